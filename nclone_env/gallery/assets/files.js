"use strict";
// Files of levels and runs: bytes to objects and back, in the formats of nclone_env.level.formats and
// nclone_env.replay. No page is needed. A level is {title, author, id, mode, tiles, records}: tiles is (966,) bytes, a
// record [type, x, y, orientation, mode].

const files = (() => {
  const COLUMNS = 42, ROWS = 23, TILES = COLUMNS * ROWS, RECORDS_AT = 1230, UNPUBLISHED = 0xFFFFFFFF;
  const REPLAY_HEAD = 76, MOST_FRAMES = 1 << 20, MOST_UNPACKED = 1 << 27;
  const MAGIC = [0x89, 0x4E, 0x52, 0x45, 0x50, 0x0D, 0x0A, 0x1A];
  const [EXIT, EXIT_SWITCH] = [3, 4], DOOR_SWITCHES = { 6: 7, 8: 9 };
  const SUICIDE = 8;

  /** An error of a file: where, what was expected, what came. */
  function refuse(where, expected, got) { throw new Error(`${where}: expected ${expected}, got ${got}`); }
  const view = (bytes) => new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const same = (one, two) => one.length === two.length && one.every((value, place) => value === two[place]);

  function joined(...parts) {
    const all = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
    let at = 0;
    for (const part of parts) { all.set(part, at); at += part.length; }
    return all;
  }

  // Bytes as text, packed bytes, and digests

  function toText(bytes) {
    let text = "";
    for (let at = 0; at < bytes.length; at += 8192) text += String.fromCharCode(...bytes.subarray(at, at + 8192));
    return btoa(text);
  }
  /** Base64, also that of links. */
  function fromText(text) {
    const plain = text.replaceAll("-", "+").replaceAll("_", "/");
    if (!/^[A-Za-z0-9+/]*=*$/.test(plain) || plain.replaceAll("=", "").length % 4 === 1) refuse("link", "a whole one, in base64", `a part of ${text.length} characters`);
    return Uint8Array.from(atob(plain), (each) => each.charCodeAt(0));
  }
  const toLink = (bytes) => toText(bytes).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");

  async function through(bytes, stream, most = MOST_UNPACKED) {
    const parts = [], writer = stream.writable.getWriter(), reader = stream.readable.getReader();
    const written = writer.write(bytes).then(() => writer.close()).catch(() => {}); // the reader gets the error
    const next = () => reader.read().catch(() => refuse("packed data", "a whole zlib stream", "damaged data"));
    let size = 0;
    for (let part = await next(); !part.done; part = await next()) {
      size += part.value.length;
      if (size > most) {
        reader.cancel().catch(() => {});
        refuse("packed data", `at most ${most} bytes`, "more");
      }
      parts.push(part.value);
    }
    await written;
    return joined(...parts);
  }
  const pack = (bytes) => through(bytes, new CompressionStream("deflate"));
  const unpack = (bytes, most, kind = "deflate") => through(bytes, new DecompressionStream(kind), most);

  const CRC = Uint32Array.from({ length: 256 }, (_, value) => {
    for (let bit = 0; bit < 8; bit++) value = value & 1 ? 0xEDB88320 ^ (value >>> 1) : value >>> 1;
    return value;
  });
  function crc32(bytes) {
    let value = -1;
    for (const byte of bytes) value = CRC[(value ^ byte) & 255] ^ (value >>> 8);
    return ~value >>> 0;
  }

  const PRIMES = [2];
  for (let each = 3; PRIMES.length < 64; each += 2) if (PRIMES.every((prime) => each % prime)) PRIMES.push(each);
  const fraction = (value) => Math.floor((value - Math.floor(value)) * 2 ** 32);

  /** SHA-256; crypto.subtle is missing where a page comes from a plain web server. */
  function sha256(bytes) {
    const state = Uint32Array.from(PRIMES.slice(0, 8), (prime) => fraction(Math.sqrt(prime)));
    const keys = Uint32Array.from(PRIMES, (prime) => fraction(Math.cbrt(prime))), words = new Uint32Array(64);
    const data = joined(bytes, [0x80], new Uint8Array((119 - (bytes.length % 64)) % 64 + 8)), access = view(data);
    access.setUint32(data.length - 8, Math.floor(bytes.length / 2 ** 29));
    access.setUint32(data.length - 4, bytes.length << 3);
    const turn = (word, by) => (word >>> by) | (word << (32 - by));
    for (let at = 0; at < data.length; at += 64) {
      for (let t = 0; t < 64; t++) {
        if (t < 16) { words[t] = access.getUint32(at + 4 * t); continue; }
        const low = words[t - 15], high = words[t - 2];
        words[t] = words[t - 16] + words[t - 7] + (turn(low, 7) ^ turn(low, 18) ^ (low >>> 3)) + (turn(high, 17) ^ turn(high, 19) ^ (high >>> 10));
      }
      let [a, b, c, d, e, f, g, h] = state;
      for (let t = 0; t < 64; t++) {
        const one = (h + (turn(e, 6) ^ turn(e, 11) ^ turn(e, 25)) + ((e & f) ^ (~e & g)) + keys[t] + words[t]) | 0;
        const two = ((turn(a, 2) ^ turn(a, 13) ^ turn(a, 22)) + ((a & b) ^ (a & c) ^ (b & c))) | 0;
        [h, g, f, e, d, c, b, a] = [g, f, e, (d + one) | 0, c, b, a, (one + two) | 0];
      }
      [a, b, c, d, e, f, g, h].forEach((value, place) => { state[place] += value; });
    }
    const digest = new Uint8Array(32);
    state.forEach((word, place) => view(digest).setUint32(4 * place, word));
    return digest;
  }

  const SIGMA = ["0123456789abcdef", "ea489fd61c02b753", "b8c052fdae367194", "7931dcbe265a40f8", "905724afe1bc683d",
    "2c6a0b834d75fe19", "c51fed4a0763928b", "db7ec13950f4862a", "6fe9b308c2d714a5", "a2847615fb9e3cd0"]
    .map((line) => Array.from(line, (digit) => parseInt(digit, 16)));
  const START = BigUint64Array.of(0x6a09e667f3bcc908n, 0xbb67ae8584caa73bn, 0x3c6ef372fe94f82bn, 0xa54ff53a5f1d36f1n,
    0x510e527fade682d1n, 0x9b05688c2b3e6c1fn, 0x1f83d9abfb41bd6bn, 0x5be0cd19137e2179n);
  const MIXED = [[0, 4, 8, 12], [1, 5, 9, 13], [2, 6, 10, 14], [3, 7, 11, 15], [0, 5, 10, 15], [1, 6, 11, 12], [2, 7, 8, 13], [3, 4, 9, 14]];

  /** BLAKE2b with a digest of 8 bytes. */
  function blake2b(bytes) {
    const state = new BigUint64Array(START), v = new BigUint64Array(16), block = new Uint8Array(128), words = new BigUint64Array(block.buffer);
    state[0] ^= 0x01010008n;
    const turn = (place, value, by) => { v[place] = (value >> by) | (value << (64n - by)); };
    for (let at = 0; at === 0 || at < bytes.length; at += 128) {
      block.fill(0);
      block.set(bytes.subarray(at, at + 128));
      v.set(state);
      v.set(START, 8);
      v[12] ^= BigInt(Math.min(at + 128, bytes.length));
      if (at + 128 >= bytes.length) v[14] = ~v[14];
      for (let round = 0; round < 12; round++) {
        const order = SIGMA[round % 10];
        MIXED.forEach(([a, b, c, d], place) => {
          v[a] += v[b] + words[order[2 * place]];
          turn(d, v[d] ^ v[a], 32n);
          v[c] += v[d];
          turn(b, v[b] ^ v[c], 24n);
          v[a] += v[b] + words[order[2 * place + 1]];
          turn(d, v[d] ^ v[a], 16n);
          v[c] += v[d];
          turn(b, v[b] ^ v[c], 63n);
        });
      }
      for (let place = 0; place < 8; place++) state[place] ^= v[place] ^ v[place + 8];
    }
    return new Uint8Array(state.buffer, 0, 8);
  }
  const hex = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");

  // Levels

  const name = (bytes) => {
    const data = bytes.subarray(0, bytes.indexOf(0) < 0 ? bytes.length : bytes.indexOf(0));
    let text;
    try { text = new TextDecoder("utf-8", { fatal: true }).decode(data); } catch { text = String.fromCharCode(...data); }
    return plain(text);
  };
  /** Text without control characters and marks of direction. */
  const plain = (text) => text.replace(/[\p{C}\u2028\u2029]/gu, "");
  function named(text, limit) {
    const utf8 = new TextEncoder().encode(plain(text));
    if (utf8.length <= limit) return utf8;
    const letters = Array.from(plain(text), (letter) => letter.codePointAt(0));
    if (letters.length <= limit && letters.every((letter) => letter < 256)) return Uint8Array.from(letters);
    return named(Array.from(text).slice(0, -1).join(""), limit);
  }
  const newLevel = (fields) => ({ title: "", author: "", id: UNPUBLISHED, mode: 0, tiles: new Uint8Array(TILES), records: [], ...fields });
  const digest = (level) => sha256(joined(level.tiles, level.records.flat()));

  /** Check what every level needs: the ninja first, and switches that stand where their exits and doors look for them. */
  function checked(level) {
    const { records } = level, exits = records.filter(([kind]) => kind === EXIT).length;
    if (records[0]?.[0] !== 0) refuse("record 0", "the ninja", records.length ? kindName(records[0][0]) : "no records");
    records.forEach(([kind], place) => {
      const partner = kind === EXIT ? place + exits : kind in DOOR_SWITCHES ? place + 1 : -1;
      if (partner >= records.length) refuse(`record ${place}`, `the switch of this ${kindName(kind)} in record ${partner}`, `only ${records.length} records`);
    });
    return level;
  }
  const kindName = (kind) => game.kinds[kind]?.name ?? `type_${kind}`;

  /** The order that files have: doors and exits with their switches, by kind. */
  function ordered(records) {
    const exits = records.filter(([kind]) => kind === EXIT).length, switchOf = new Map();
    records.forEach(([kind], place) => {
      if (kind === EXIT) switchOf.set(records[place], records[place + exits]);
      else if (kind in DOOR_SWITCHES) switchOf.set(records[place], records[place + 1]);
    });
    const owned = new Set(switchOf.values()), found = [];
    for (let kind = 0; kind < 40; kind++) {
      const own = records.filter((record) => record[0] === kind && !owned.has(record));
      if (kind === EXIT) found.push(...own, ...own.map((record) => switchOf.get(record)));
      else for (const record of own) found.push(record, ...(switchOf.has(record) ? [switchOf.get(record)] : []));
    }
    return found;
  }

  function readMap(bytes) {
    if (bytes.length < RECORDS_AT) refuse(`offset ${bytes.length}`, `a map of at least ${RECORDS_AT} bytes`, "the end");
    const access = view(bytes), counts = Array.from({ length: 40 }, (_, kind) => access.getUint16(1150 + 2 * kind, true));
    let count = counts.reduce((sum, each) => sum + each, 0);
    for (const [door, own] of Object.entries(DOOR_SWITCHES)) count += counts[door] - counts[own];
    const whole = Math.floor((bytes.length - RECORDS_AT) / 5);
    if (count > whole) refuse(`offset ${bytes.length}`, `${count} records, as the counts at 1150 say`, `the end after ${whole}`);
    const all = Array.from({ length: whole }, (_, place) => Array.from(bytes.subarray(RECORDS_AT + 5 * place, RECORDS_AT + 5 * place + 5)));
    const kinds = all.slice(0, count).map(([kind]) => kind), has = (kind) => kinds.filter((each) => each === kind).length;
    const agree = counts.every((each, kind) => (kind === 7 || kind === 9 ? counts[kind - 1] : each) === has(kind)) && kinds.every((kind) => kind < 40);
    const exits = kinds.includes(EXIT) || !all.some(([kind]) => kind === EXIT);
    return checked(newLevel({
      tiles: bytes.slice(184, 1150), records: agree && exits ? all.slice(0, count) : all,
      title: name(bytes.subarray(38, 166)), author: name(bytes.subarray(167, 183)),
      id: access.getUint32(8, true), mode: Object.values(game.modes).includes(access.getUint32(12, true)) ? access.getUint32(12, true) : game.modes.unset,
    }));
  }

  function writeMap(level) {
    const bytes = new Uint8Array(RECORDS_AT + 5 * level.records.length), access = view(bytes);
    [0, bytes.length, level.id, level.mode, 0x25, UNPUBLISHED].forEach((word, place) => access.setUint32(4 * place, word, true));
    bytes.set(named(level.title, 128), 38);
    bytes.set(named(level.author, 16), 167);
    bytes.set(level.tiles, 184);
    const counts = new Uint16Array(40);
    for (const [kind] of level.records) counts[kind] += kind === 7 || kind === 9 ? 0 : 1;
    counts.forEach((count, kind) => access.setUint16(1150 + 2 * kind, count, true));
    bytes.set(level.records.flat(), RECORDS_AT);
    return bytes;
  }

  const layouts = () => game.kinds.map((kind, number) => [number, kind.pack]).filter(([, layout]) => layout);

  function readPackLine(line, number) {
    const found = /^\$(.*)#([0-9a-fA-F]*)#$/s.exec(line);
    if (!found || found[2].length % 2) refuse(`line ${number}`, "a level, $title#hex#", line.slice(0, 20));
    const bytes = Uint8Array.from(found[2].match(/../g) ?? [], (pair) => parseInt(pair[1] + pair[0], 16)), access = view(bytes);
    if (bytes.length < 974 || access.getUint32(0)) refuse(`line ${number}`, `4 zero bytes and ${TILES} tiles`, `${bytes.length} bytes`);
    const records = [];
    let at = 4 + TILES;
    for (const [kind, layout] of layouts()) {
      const count = at + 2 <= bytes.length ? access.getUint16(at) : 0, switches = [];
      at += 2;
      if (at + count * layout.length > bytes.length) refuse(`line ${number}`, `${count} ${kindName(kind)} records`, "the end");
      for (let each = 0; each < count; each++, at += layout.length) {
        const field = (letter) => (layout.includes(letter) ? bytes[at + layout.indexOf(letter)] : 0);
        records.push([kind, field("x"), field("y"), field("o"), field("m")]);
        const partner = [game.kinds[kind].switch, field("X"), field("Y"), 0, 0];
        if (kind === EXIT) switches.push(partner);
        else if (layout.includes("X")) records.push(partner);
      }
      records.push(...switches);
    }
    if (at + 4 !== bytes.length || access.getUint32(at)) refuse(`line ${number}`, `4 zero bytes from byte ${at} to the end`, `${bytes.length} bytes`);
    return checked(newLevel({ title: found[1], tiles: bytes.slice(4, 4 + TILES), records }));
  }

  function readPack(bytes) {
    const text = new TextDecoder().decode(bytes).replace(/\0/g, "");
    return text.split(/\r\n|\n|\r/).map((line, place) => [line.trim(), place + 1])
      .filter(([line]) => line && !/^(#|;|\/\/)/.test(line)).map(([line, number]) => readPackLine(line, number));
  }

  function writePack(levels) {
    return new TextEncoder().encode(levels.map((level) => {
      const records = ordered(level.records), bytes = [0, 0, 0, 0, ...level.tiles];
      for (const [kind, layout] of layouts()) {
        const own = records.map((record, place) => [record, place]).filter(([record]) => record[0] === kind);
        bytes.push(own.length >> 8, own.length & 255);
        for (const [record, place] of own) {
          const partner = records[kind === EXIT ? place + own.length : place + 1] ?? record;
          const fields = { x: record[1], y: record[2], o: record[3], m: record[4], X: partner[1], Y: partner[2] };
          bytes.push(...Array.from(layout, (letter) => fields[letter]));
        }
      }
      bytes.push(0, 0, 0, 0);
      const digits = bytes.map((byte) => (byte & 15).toString(16) + (byte >> 4).toString(16)).join("");
      return `$${plain(level.title)}#${digits}#\n`;
    }).join(""));
  }

  /** Read our text: TOML of plain keys with a string or a number. */
  function readLevelText(text) {
    const values = {}, pattern = /[ \t]*(?:#[^\n]*)?\r?\n|[ \t]*(\w+)[ \t]*=[ \t]*(?:"""\r?\n?([^]*?)"""|'''\r?\n?([^]*?)'''|"((?:[^"\\\n]|\\.)*)"|'([^'\n]*)'|(\d+))[ \t]*(?:#[^\n]*)?(?:\r?\n|$)/y;
    text = text.replace(/^\uFEFF/, "");
    while (pattern.lastIndex < text.length) {
      const at = pattern.lastIndex, found = pattern.exec(text);
      if (!found) {
        const line = text.slice(at).split("\n")[0];
        refuse(`line ${text.slice(0, at).split("\n").length}`, "key = value, with a string or a number", line.slice(0, 40) || "the end");
      }
      if (found[1]) values[found[1]] = found.slice(2).find((part) => part !== undefined).replace(/\\(["\\])/g, "$1");
    }
    for (const key of ["title", "tiles", "entities"]) if (!(key in values)) refuse("text", `the key ${key}`, "none");
    const rows = values.tiles.split(/\r?\n/).filter((line, place, all) => line || place < all.length - 1);
    if (rows.length !== ROWS) refuse("tiles", `${ROWS} lines`, rows.length);
    const characters = game.tiles.map((tile) => tile.character);
    const tiles = rows.flatMap((row, number) => {
      if (row.length !== COLUMNS) refuse(`line ${number + 1} of the tiles`, `${COLUMNS} tiles`, row.length);
      return Array.from(row, (character) => {
        if (!characters.includes(character)) refuse(`line ${number + 1} of the tiles`, `one of ${characters.join("")}`, character);
        return characters.indexOf(character);
      });
    });
    const records = values.entities.split("\n").map((line) => line.split("#")[0].trim()).filter(Boolean).map((line) => {
      const [word, ...numbers] = line.split(/\s+/), kind = game.kinds.findIndex((each) => each.name === word);
      if (kind < 0 || numbers.length < 2 || numbers.length > 4 || !numbers.every((each) => /^\d{1,3}$/.test(each) && each < 256)) {
        refuse("entities", "name x y [orientation] [mode]", line.slice(0, 40));
      }
      return [kind, ...numbers.map(Number), 0, 0].slice(0, 5);
    });
    return checked(newLevel({
      title: plain(values.title), author: plain(values.author ?? ""), id: Number(values.level_id ?? UNPUBLISHED),
      mode: game.modes[values.game_mode ?? "solo"] ?? 0, tiles: Uint8Array.from(tiles), records,
    }));
  }

  function writeLevelText(level) {
    const quoted = (text) => `"${plain(text).replace(/[\\"]/g, "\\$&")}"`;
    const rows = Array.from({ length: ROWS }, (_, row) => Array.from(level.tiles.subarray(COLUMNS * row, COLUMNS * (row + 1)), (tile) => (game.tiles[tile] ?? game.tiles[0]).character).join(""));
    const lines = ordered(level.records).map((record) => {
      const values = record.slice(1);
      while (values.length > 2 && values.at(-1) === 0) values.pop();
      return [kindName(record[0]), ...values].join(" ");
    });
    const mode = Object.entries(game.modes).find(([, number]) => number === level.mode)[0];
    return ["format = 1", `title = ${quoted(level.title)}`, `author = ${quoted(level.author)}`,
      ...(level.id === UNPUBLISHED ? [] : [`level_id = ${level.id}`]), `game_mode = "${mode}"`,
      'tiles = """', ...rows, '"""', 'entities = """', ...lines, '"""', ""].join("\n");
  }

  // Runs

  function checkInputs(bytes, most = 15) {
    const wrong = bytes.findIndex((byte) => byte > most);
    if (wrong >= 0) refuse(`input of frame ${wrong}`, `a byte of 0 to ${most}`, bytes[wrong]);
    return bytes;
  }

  async function readReplay(bytes) {
    const access = view(bytes), word = (place) => access.getUint32(8 + 4 * place, true);
    if (bytes.length < REPLAY_HEAD) refuse(`offset ${bytes.length}`, `a header of ${REPLAY_HEAD} bytes`, "the end");
    const [version, frames, ...sizes] = [0, 1, 2, 3, 4].map(word);
    if (version !== 1) refuse("offset 8", "format version 1", version);
    if (access.getUint32(72, true) !== crc32(bytes.subarray(0, 72))) refuse("offset 72", "a valid header checksum", "a mismatch: the header is damaged or was changed");
    const size = REPLAY_HEAD + sizes[0] + sizes[1] + sizes[2];
    if (bytes.length !== size) refuse(`offset ${Math.min(size, bytes.length)}`, `a file of ${size} bytes`, bytes.length);
    if (access.getUint32(68, true) !== crc32(bytes.subarray(REPLAY_HEAD))) refuse("offset 68", "a valid checksum of the contents", "a mismatch: the contents are damaged or were changed");
    if (frames > MOST_FRAMES) refuse("offset 12", `at most ${MOST_FRAMES} frames`, frames);
    const middle = REPLAY_HEAD + sizes[0] + sizes[1];
    const metadata = JSON.parse(new TextDecoder().decode(bytes.subarray(REPLAY_HEAD, REPLAY_HEAD + sizes[0])));
    const level = readMap(await unpack(bytes.subarray(REPLAY_HEAD + sizes[0], middle), 1 << 20));
    if (!same(digest(level), bytes.subarray(36, 68))) refuse("offset 36", `the digest of the level, ${hex(digest(level))}`, hex(bytes.subarray(36, 68)));
    const inputs = checkInputs(await unpack(bytes.subarray(middle), frames));
    if (inputs.length !== frames) refuse(`inputs at offset ${middle}`, `${frames} frames`, inputs.length);
    return { level, inputs, hash: hex(bytes.subarray(28, 36)), name: String(metadata.settings?.level ?? level.title) };
  }

  /** Write a recording; `hash` is that of its trajectory, 8 bytes. */
  async function writeReplay(level, inputs, hash, settings = {}) {
    const parts = [new TextEncoder().encode(JSON.stringify({ seed: null, settings })), await pack(writeMap(level)), await pack(inputs)];
    const body = joined(...parts), head = new Uint8Array(REPLAY_HEAD), access = view(head);
    head.set(MAGIC);
    [1, inputs.length, ...parts.map((part) => part.length)].forEach((word, place) => access.setUint32(8 + 4 * place, word, true));
    head.set(hash, 28);
    head.set(digest(level), 36);
    access.setUint32(68, crc32(body), true);
    access.setUint32(72, crc32(head.subarray(0, 72)), true);
    return joined(head, body);
  }

  /** Return the hash of a trajectory; `ninjas` yields x, y, vx, vy and state after each frame. */
  function trajectoryHash(ninjas, frames) {
    const data = new Uint8Array(33 * frames), access = view(data);
    let at = 0;
    for (const { x, y, vx, vy, state } of ninjas) {
      [x, y, vx, vy].forEach((value, place) => access.setFloat64(at + 8 * place, value, true));
      access.setInt8(at + 32, state);
      at += 33;
    }
    return blake2b(data);
  }

  const isAttract = (bytes) => {
    if (bytes.length < RECORDS_AT + 5) return false;
    const access = view(bytes), start = 8 + access.getUint32(0, true), size = access.getUint32(4, true);
    return start >= RECORDS_AT + 5 && size >= 30 && start + 5 <= bytes.length && access.getUint32(start + 1, true) === size;
  };
  function readAttract(bytes) {
    const start = 8 + view(bytes).getUint32(0, true), size = view(bytes).getUint32(4, true);
    if (bytes.length !== start + size) refuse("offset 0", `a file of ${start + size} bytes`, bytes.length);
    return { level: readMap(bytes.subarray(0, start)), inputs: checkInputs(bytes.slice(start + 30)) };
  }
  function writeAttract(level, inputs) {
    const map = writeMap(level), block = new Uint8Array(30 + inputs.length), access = view(block);
    access.setUint32(1, block.length, true);
    access.setUint32(5, 1, true);
    access.setUint32(9, inputs.length, true);
    block[25] = 1;
    access.setUint32(26, UNPUBLISHED, true);
    block.set(inputs, 30);
    view(map).setUint32(0, map.length - 8, true);
    view(map).setUint32(4, block.length, true);
    return joined(map, block);
  }

  /** The place and length of the map of a recording of nclone, and whether the run won, or undefined. */
  function peerSizes(bytes) {
    if (bytes.length < RECORDS_AT + 5 + 13) return undefined;
    const [a, b, c] = [0, 4, 8].map((at) => view(bytes).getUint32(at, true));
    if (a === 1 && b >= RECORDS_AT + 5 && 13 + b + c === bytes.length) return { at: 13, size: b, won: bytes[12] !== 0 };
    return a >= RECORDS_AT + 5 && b && 8 + a + b === bytes.length ? { at: 8, size: a, won: true } : undefined;
  }

  /** Words of inputs such as "24RJ 3.": a count and keys; S is suicide. */
  function readInputs(text) {
    const inputs = [];
    text.split(/\s+/).filter(Boolean).forEach((word, place) => {
      const found = /^(\d{1,6})(\.|[LRJS]+)$/.exec(word.toUpperCase());
      if (!found) refuse(`word ${place + 1}`, "a count and keys of . L R J, such as 24RJ", word.slice(0, 20));
      if (inputs.length + Number(found[1]) > MOST_FRAMES) refuse(`word ${place + 1}`, `at most ${MOST_FRAMES} frames`, "more");
      const byte = Array.from(found[2]).reduce((sum, key) => sum | ({ J: 1, R: 2, L: 4, S: 8 }[key] ?? 0), 0);
      for (let frame = 0; frame < found[1]; frame++) inputs.push(byte);
    });
    return Uint8Array.from(inputs);
  }
  function writeInputs(inputs) {
    const words = [];
    for (let at = 0; at < inputs.length;) {
      let end = at;
      while (end < inputs.length && inputs[end] === inputs[at] && end - at < 9999) end++;
      const keys = [[4, "L"], [2, "R"], [1, "J"], [SUICIDE, "S"]].filter(([bit]) => inputs[at] & bit).map(([, key]) => key).join("");
      words.push(`${end - at}${keys || "."}`);
      at = end;
    }
    return words.join(" ");
  }

  // Submissions of the benchmark

  async function readZip(bytes) {
    const access = view(bytes), found = new Map();
    let end = bytes.length - 22;
    while (end >= 0 && access.getUint32(end, true) !== 0x06054B50) end--;
    if (end < 0) refuse("file", "a zip file", "no directory at its end");
    let at = access.getUint32(end + 16, true);
    for (let left = access.getUint16(end + 10, true); left > 0; left--) {
      if (at + 46 > bytes.length || access.getUint32(at, true) !== 0x02014B50) refuse(`offset ${at}`, "an entry of the directory", "other bytes");
      const method = access.getUint16(at + 10, true), [packed, size] = [20, 24].map((place) => access.getUint32(at + place, true));
      const [letters, extra, comment] = [28, 30, 32].map((place) => access.getUint16(at + place, true));
      const own = access.getUint32(at + 42, true), title = new TextDecoder().decode(bytes.subarray(at + 46, at + 46 + letters));
      const start = own + 30 + access.getUint16(own + 26, true) + access.getUint16(own + 28, true), data = bytes.subarray(start, start + packed);
      const content = method === 8 ? await unpack(data, size, "deflate-raw") : method === 0 ? data : refuse(title, "a member that is stored or deflated", `method ${method}`);
      if (content.length !== size || crc32(content) !== access.getUint32(at + 16, true)) refuse(title, "the length and checksum of the directory", "others: it is damaged");
      found.set(title, content);
      at += 46 + letters + extra + comment;
    }
    return found;
  }
  /** Return the bytes of an array of a file of NumPy, of so many items of a size. */
  function readArray(members, title, items, itemsize) {
    const data = members.get(title);
    if (!data) refuse("members", title, "none of this name");
    const start = 10 + view(data).getUint16(8, true);
    if (items !== undefined && data.length !== start + items * itemsize) refuse(title, `${items} items`, (data.length - start) / itemsize);
    return data.slice(start);
  }
  function readSubmission(members) {
    const index = members.get("submission.json");
    if (!index) refuse("members", "submission.json, as submissions of the benchmark have", [...members.keys()].slice(0, 3).join(", ") || "none");
    const submission = JSON.parse(new TextDecoder().decode(index));
    for (const [title, stated] of Object.entries(submission.members)) {
      if (!members.has(title)) refuse("members", title, "none of this name");
      if (hex(sha256(members.get(title))) !== stated) refuse(title, "the SHA-256 that submission.json states", "another one");
    }
    submission.runs.forEach((run, number) => {
      for (const kind of ["sampled", "probable"]) {
        if (!members.has(`${number}-${kind}-steps.npy`)) continue;
        const steps = new Uint32Array(readArray(members, `${number}-${kind}-steps.npy`).buffer);
        const actions = readArray(members, `${number}-${kind}-actions.npy`, steps.reduce((sum, each) => sum + each, 0), 1);
        const ends = readArray(members, `${number}-${kind}-ends.npy`, steps.length, 10);
        run[kind] = { steps, actions, ends: Array.from(steps, (_, each) => ({ frames: view(ends).getUint32(10 * each, true), mark: view(ends).getUint32(10 * each + 4, true), won: ends[10 * each + 8], whole: ends[10 * each + 9] })) };
      }
    });
    return submission;
  }

  // Policies

  /** Read a pickle of plain values and tensors, as torch writes it: a dict is a Map, a tensor {key, shape}, and whatever else it
   *  makes undefined. Nothing is called. */
  function readPickle(bytes) {
    const access = view(bytes), stack = [], marks = [], memo = new Map(), TENSOR = "torch._utils _rebuild_tensor_v2";
    let at = 0;
    const number = (method, size) => { at += size; return access[method](at - size, true); };
    const words = (length) => { at += length; return new TextDecoder().decode(bytes.subarray(at - length, at)); };
    const line = () => { const end = bytes.indexOf(10, at); return words((end < 0 ? bytes.length : end) - at + 1).trimEnd(); };
    const since = () => stack.splice(marks.pop());
    const put = (value) => { stack.push(value); };
    const items = (values) => { for (let place = 0; place < values.length; place += 2) stack.at(-1).set(values[place], values[place + 1]); };
    const steps = {
      0x80: () => number("getUint8", 1), 0x7D: () => put(new Map()), 0x5D: () => put([]), 0x29: () => put([]), 0x28: () => marks.push(stack.length),
      0x58: () => put(words(number("getUint32", 4))), 0x4B: () => put(number("getUint8", 1)), 0x4D: () => put(number("getUint16", 2)), 0x4A: () => put(number("getInt32", 4)),
      0x8A: () => { let value = 0n; const size = number("getUint8", 1); for (let place = 0; place < size; place++) value |= BigInt(number("getUint8", 1)) << BigInt(8 * place); put(Number(BigInt.asIntN(8 * size, value))); },
      0x47: () => { put(access.getFloat64(at, false)); at += 8; }, 0x4E: () => put(null), 0x88: () => put(true), 0x89: () => put(false),
      0x71: () => memo.set(number("getUint8", 1), stack.at(-1)), 0x72: () => memo.set(number("getUint32", 4), stack.at(-1)),
      0x68: () => put(memo.get(number("getUint8", 1))), 0x6A: () => put(memo.get(number("getUint32", 4))),
      0x75: () => items(since()), 0x73: () => items(stack.splice(-2)), 0x65: () => { const values = since(); stack.at(-1).push(...values); }, 0x61: () => { const value = stack.pop(); stack.at(-1).push(value); },
      0x74: () => put(since()), 0x85: () => put(stack.splice(-1)), 0x86: () => put(stack.splice(-2)), 0x87: () => put(stack.splice(-3)),
      0x63: () => put(`${line()} ${line()}`), 0x51: () => put(stack.pop()[2]), 0x62: () => stack.pop(),
      0x52: () => { const [called, values] = stack.splice(-2); put(called === TENSOR ? { key: values[0], shape: values[2] } : undefined); },
    };
    try {
      while (bytes[at] !== 0x2E) {
        const code = bytes[at++];
        if (!(code in steps)) break;
        steps[code]();
      }
    } catch { at = -1; } // of a stack, a view or a value that is not there
    if (bytes[at] !== 0x2E || stack.length !== 1) refuse("data.pkl", "values and tensors", "others, or a damaged file");
    return stack[0];
  }

  /** Return the policy of a checkpoint of nclone_env, as policies.js takes it. */
  function readPolicy(members) {
    const title = [...members.keys()].find((each) => each.endsWith("/data.pkl")), content = readPickle(members.get(title)), folder = title.slice(0, -"data.pkl".length);
    const part = (name) => (content instanceof Map && content.get(name) instanceof Map ? content.get(name) : refuse("checkpoint", `${name}, as checkpoints of nclone_env have`, "none"));
    const [config, shapes, parameters] = ["train_config", "observation_shapes", "policy"].map(part);
    const layers = [], encoders = {}, recurrence = [], parts = [];
    let length = 0;
    const place = ({ key, shape }) => {
      const data = members.get(`${folder}data/${key}`), size = shape.reduce((product, each) => product * each, 1);
      if (data?.length !== 4 * size) refuse(`data/${key}`, `${size} numbers`, (data?.length ?? 0) / 4);
      parts.push(data);
      length += size;
      return length - size;
    };
    for (const [name, weight] of parameters) {
      const [, layer, which] = /^(.*)\.weight(|_ih|_hh)$/.exec(name) ?? [], bias = parameters.get(`${layer}.bias${which}`);
      if (!layer || layer.startsWith("critic")) continue;
      if (!/^(trunk|actor|recurrence|encoders\.locals)\b/.test(layer) || weight?.shape?.length !== 2 || !bias?.shape) refuse("policy", "layers of vectors and of locals", name);
      const numbers = [place(weight), place(bias), ...weight.shape];
      if (layer.startsWith("encoders.")) encoders[layer.split(".")[1]] = numbers; else (layer === "recurrence" ? recurrence : layers).push(numbers);
    }
    const units = config.get("recurrent_size"), wanted = units ? [3 * units, 3 * units] : [];
    if (String(recurrence.map((each) => each[2])) !== String(wanted)) refuse("recurrent_size", `layers of ${wanted.join(" and ") || 0} units`, recurrence.map((each) => each[2]).join(" and ") || 0);
    if (layers.at(-1)?.[2] !== game.inputs.length) refuse("policy", `logits of ${game.inputs.length} actions`, layers.at(-1)?.[2] ?? 0);
    const environment = Object.fromEntries(["observations", ...game.rules].map((name) => [name, config.get(name)]));
    const { observations, paths, dtype, ...numbers } = environment, wrong = Object.keys(numbers).find((name) => !(Number.isInteger(Number(numbers[name])) && numbers[name] >= (name.startsWith("frame_") ? 1 : 0) && numbers[name] < (name === "frame_stack" ? 65 : 1 << 20)));
    if (wrong) refuse(wrong, "a whole number", numbers[wrong]);
    if (!["float32", "float16"].includes(dtype)) refuse("dtype", "float32 or float16", dtype);
    if (!Array.isArray(observations) || !["tiles", "doors"].includes(paths)) refuse("paths", "tiles or doors, and observations", paths);
    return { environment, inputs: [...shapes.keys()].filter((name) => name !== "action_mask"), layers, encoders, recurrence, weights: joined(...parts) };
  }

  /** Return what a file is: {kind, levels, inputs, ...}; kind is replay, attract, nclone, submission, policy, map, pack or text. */
  async function open(bytes) {
    if (bytes.length > MOST_UNPACKED) refuse("file", `at most ${MOST_UNPACKED} bytes`, bytes.length);
    if (bytes[0] === 0x1F && bytes[1] === 0x8B) return open(await unpack(bytes, 1 << 24, "gzip"));
    if (same(bytes.subarray(0, 8), MAGIC)) { const found = await readReplay(bytes); return { kind: "replay", levels: [found.level], ...found }; }
    if (bytes[0] === 0x50 && bytes[1] === 0x4B) {
      const members = await readZip(bytes), isPolicy = [...members.keys()].some((each) => each.endsWith("/data.pkl"));
      return isPolicy ? { kind: "policy", levels: [], policy: readPolicy(members) } : { kind: "submission", levels: [], submission: readSubmission(members) };
    }
    if (isAttract(bytes)) { const found = readAttract(bytes); return { kind: "attract", levels: [found.level], ...found }; }
    const sizes = peerSizes(bytes);
    if (sizes) return { kind: "nclone", levels: [readMap(bytes.subarray(sizes.at, sizes.at + sizes.size))], inputs: checkInputs(bytes.slice(sizes.at + sizes.size), 7), won: sizes.won };
    const start = new TextDecoder().decode(bytes.subarray(0, 4096)), isText = !/[\0-\x08]/.test(start);
    if (isText && /^[\s\uFEFF]*\$|\n\$/.test(start)) return { kind: "pack", levels: readPack(bytes) };
    if (isText && /^\s*(\w+\s*=|#)/m.test(start)) return { kind: "text", levels: [readLevelText(new TextDecoder().decode(bytes))] };
    if (bytes.length >= RECORDS_AT) return { kind: "map", levels: [readMap(bytes)] };
    refuse("file", "a level, a recording or a submission", `${bytes.length} bytes of another kind`);
  }

  return {
    COLUMNS, ROWS, EXIT, EXIT_SWITCH, DOOR_SWITCHES, SUICIDE, toText, fromText, toLink, pack, unpack, sha256, blake2b, crc32, hex, digest,
    newLevel, ordered, checked, kindName, readMap, writeMap, readPack, writePack, readLevelText, writeLevelText, readReplay, writeReplay,
    trajectoryHash, readAttract, writeAttract, readInputs, writeInputs, readZip, readSubmission, readPolicy, open,
  };
})();
