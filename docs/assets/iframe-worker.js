// Browsers start no worker for a page that was opened as a file. The search's worker then runs in a hidden frame,
// which has the page's origin: only what the search needs of a worker is here. zensical would load another from a
// server, unless a file is there whose name says iframe-worker.
if (location.protocol === "file:") {
  window.Worker = class {
    constructor(address) {
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      this.started = new Promise((resolve) => this.frame.addEventListener("load", resolve, { once: true }));
      const script = JSON.stringify(String(address)).replaceAll("<", "\\u003c");
      this.frame.srcdoc = `<script>
        self.postMessage = (data) => self.frameElement.answer(data);
        document.write("<script src=" + JSON.stringify(${script}) + "><\\/script>");
      </script>`;
      this.frame.answer = (data) => this.onmessage?.({ data });
      document.head.append(this.frame);
    }

    postMessage(data) {
      this.started.then(() => this.frame.contentWindow?.onmessage?.({ data }));
    }

    terminate() {
      this.frame.remove();
    }
  };
}
