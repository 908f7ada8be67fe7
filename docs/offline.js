// Browsers start no worker from a file. Where the site is opened as files, the search runs in a hidden frame instead.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe"), address = new URL(url, location.href);
      frame.hidden = true;
      this.ready = new Promise((resolve) => frame.addEventListener("load", () => {
        const inner = frame.contentWindow, script = inner.document.createElement("script");
        inner.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
        inner.importScripts = () => Promise.resolve(); // languages other than English
        script.addEventListener("load", () => resolve(inner));
        script.src = address;
        inner.document.body.append(script);
      }, { once: true }));
      frame.srcdoc = "<!doctype html><body></body>";
      document.body.append(frame);
    }

    postMessage(data) {
      this.ready.then((inner) => inner.dispatchEvent(new inner.MessageEvent("message", { data })));
    }

    terminate() {}
  };
}
