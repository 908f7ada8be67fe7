// Ask the search of the built site, as its pages do: node search.js SITE QUERY...; prints the first pages of each as JSON.
"use strict";
const fs = require("fs");
const path = require("path");

const [site, ...queries] = process.argv.slice(2);
const folder = path.join(site, "assets", "javascripts", "workers");
const worker = fs.readdirSync(folder).find((name) => /^search\..*\.js$/.test(name));
const index = JSON.parse(fs.readFileSync(path.join(site, "search", "search_index.json"), "utf-8"));
const answers = [];
let listen;

globalThis.self = globalThis;
globalThis.importScripts = () => {};
globalThis.addEventListener = (_, listener) => (listen = listener);
globalThis.postMessage = (message) => answers.push(message);
(0, eval)(fs.readFileSync(path.join(folder, worker), "utf-8"));

async function ask() {
  await listen({ data: { type: 0, data: { ...index, options: { suggest: false } } } });
  for (const query of queries) await listen({ data: { type: 2, data: query } });
  const found = answers.slice(1).map((answer) => answer.data.items.map((page) => page[0].location.split("#")[0]));
  console.log(JSON.stringify(found.map((pages) => pages.slice(0, 4))));
}
ask();
