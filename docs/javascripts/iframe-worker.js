// A page that was opened from the disk may start no worker, and the search runs in one.
// This is an iframe that behaves like a worker: the search works without a server.
class FrameWorker extends EventTarget {
  constructor(url) {
    super();
    this.frame = document.createElement("iframe");
    this.frame.hidden = true;
    document.body.appendChild(this.frame);
    const inside = (this.inside = this.frame.contentWindow);
    inside.document.open();
    inside.document.write("<body></body>");
    inside.document.close();
    const load = (from) =>
      new Promise((loaded, failed) => {
        const script = inside.document.createElement("script");
        Object.assign(script, { src: from, onload: loaded, onerror: failed });
        inside.document.body.appendChild(script);
      });
    inside.importScripts = (...urls) =>
      urls.reduce((before, from) => before.then(() => load(from)), Promise.resolve());
    inside.postMessage = (data) =>
      this.dispatchEvent(new MessageEvent("message", { data }));
    this.ready = load(url);
  }

  postMessage(data) {
    this.ready.then(() =>
      this.inside.dispatchEvent(new this.inside.MessageEvent("message", { data })),
    );
  }

  terminate() {
    this.frame.remove();
  }
}

if (location.protocol === "file:") window.Worker = FrameWorker;
