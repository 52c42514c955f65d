/** Headless Chromium with pages of a server of ours; it is killed with all of its processes. */

import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { ROOT, vectors } from "./files.mjs";

/** Where Chromium is, or undefined. */
export const CHROMIUM = [process.env.CHROMIUM, "/usr/bin/chromium", "/usr/bin/chromium-browser"]
  .filter(Boolean)
  .find((path) => existsSync(path));

const FLAGS = [
  "--headless",
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
  "--disable-dev-shm-usage",
  "--remote-debugging-port=0",
];
const PATIENCE = 180_000; // milliseconds after which a page that says nothing is given up

/**
 * A server whose pages run functions of build/browser.js and tell what came of it.
 *
 * /page?do=NAME&... runs `pages[NAME](parameters, tell)`; what it tells comes to `onTold`, and
 * `told(count)` waits until that many pages have ended.
 */
export class Pages {
  heard = []; // { page, kind, value }, in the order of arrival
  positions = "[]"; // what pages fetch as /positions
  #waiting = [];
  #together = []; // answers that tabs wait for until all have come

  static async open() {
    const pages = new Pages();
    pages.server = createServer((request, response) => pages.#answer(request, response));
    await new Promise((done) => pages.server.listen(0, "127.0.0.1", done));
    pages.origin = `http://127.0.0.1:${pages.server.address().port}`;
    return pages;
  }

  close() {
    this.server.closeAllConnections();
    this.server.close();
  }

  url(name, parameters = {}) {
    return `${this.origin}/page?${new URLSearchParams({ do: name, ...parameters })}`;
  }

  /** Forget what was heard. */
  clear() {
    this.heard = [];
    this.#together = [];
  }

  /** Wait until so many pages have ended; return what they ended with. */
  ended(count) {
    return this.until((heard) => {
      const ends = heard.filter(({ kind }) => kind === "end" || kind === "error");
      return ends.length >= count && ends;
    });
  }

  /** Wait until what was heard holds to a condition; return what that says. */
  until(condition) {
    return new Promise((resolve, reject) => {
      const giveUp = setTimeout(() => {
        reject(new Error(`the pages have told ${this.heard.length} things and no more`));
      }, PATIENCE);
      const look = () => {
        const found = condition(this.heard);
        if (!found) return false;
        clearTimeout(giveUp);
        resolve(found);
        return true;
      };
      if (!look()) this.#waiting.push(look);
    });
  }

  #answer(request, response) {
    const { pathname, searchParams } = new URL(request.url, this.origin);
    if (pathname === "/page") {
      response.setHeader("Content-Type", "text/html");
      response.end('<!doctype html><title>a page</title><script src="/browser.js"></script>');
    } else if (pathname === "/browser.js") {
      response.setHeader("Content-Type", "text/javascript");
      response.end(readFileSync(join(ROOT, "build/browser.js")));
    } else if (pathname === "/told" || pathname === "/reports") {
      let body = "";
      request.on("data", (chunk) => (body += chunk));
      request.on("end", () => {
        const told = pathname === "/told" ? JSON.parse(body) : { kind: "report", value: body };
        const { headers } = request;
        this.heard.push({ page: searchParams.get("page"), headers, ...told });
        response.writeHead(204).end();
        this.#waiting = this.#waiting.filter((look) => !look());
      });
    } else if (pathname === "/together") {
      this.#together.push(response);
      if (this.#together.length < Number(searchParams.get("tabs"))) return;
      for (const each of this.#together.splice(0)) each.writeHead(204).end();
    } else if (pathname === "/positions") {
      response.end(this.positions);
    } else if (pathname.startsWith("/collections/")) {
      const digest = pathname.split("/")[2];
      response.end(vectors.documents.good.find((entry) => entry.digest === digest)?.canonical);
    } else {
      response.writeHead(404).end();
    }
  }
}

/** One run of Chromium; pages are opened in tabs of it. */
export class Browser {
  #address; // of the port where Chromium is told to open and to close tabs, once it is known

  constructor(profile) {
    const port = join(profile, "DevToolsActivePort");
    rmSync(port, { force: true }); // of the run before
    // A process group of its own, so that none of its processes outlives a kill.
    this.process = spawn(CHROMIUM, [...FLAGS, `--user-data-dir=${profile}`, "about:blank"], {
      detached: true,
      stdio: "ignore",
    });
    this.gone = new Promise((done) => this.process.once("exit", done));
    this.#address = this.#started(port);
    this.#address.catch(() => {}); // who opens a page is told
  }

  async #started(file) {
    const deadline = Date.now() + PATIENCE;
    let port = "";
    while (!/^\d+\n/.test(port)) {
      if (Date.now() > deadline) throw new Error("Chromium does not start");
      await new Promise((done) => setTimeout(done, 20));
      port = existsSync(file) ? readFileSync(file, "ascii") : "";
    }
    return `http://127.0.0.1:${port.split("\n")[0]}/json`;
  }

  /** Open a page in a tab for each address; return the names of the tabs. */
  async open(urls) {
    const address = await this.#address;
    const deadline = Date.now() + PATIENCE;
    const tabs = [];
    for (const url of urls) {
      let tab = null;
      while (!(tab = await opened(`${address}/new?${encodeURIComponent(url)}`))) {
        if (Date.now() > deadline) throw new Error("Chromium opens no tab");
      }
      tabs.push(tab);
    }
    return tabs;
  }

  async close(tabs) {
    const address = await this.#address;
    await Promise.all(tabs.map((tab) => fetch(`${address}/close/${tab}`)));
  }

  /** Kill all of its processes, as a crash or a lost battery would. */
  async kill() {
    try {
      process.kill(-this.process.pid, "SIGKILL");
    } catch (error) {
      if (error.code !== "ESRCH") throw error;
    }
    await this.gone;
  }
}

/** Ask Chromium for a tab, and return its name: one that has just been started may not answer. */
async function opened(address) {
  try {
    const answer = await fetch(address, { method: "PUT", signal: AbortSignal.timeout(10_000) });
    return answer.ok ? (await answer.json()).id : null;
  } catch {
    return null;
  }
}

/** Run with a new folder for a browser's profile, which is removed afterwards. */
export async function withProfile(run) {
  const profile = mkdtempSync(join(tmpdir(), "chromium-"));
  try {
    return await run(profile);
  } finally {
    rmSync(profile, { recursive: true, force: true, maxRetries: 10, retryDelay: 200 });
  }
}

/** Run with a new browser, which is killed afterwards. */
export async function withBrowser(profile, run) {
  const browser = new Browser(profile);
  try {
    return await run(browser);
  } finally {
    await browser.kill();
  }
}

/** Open pages in tabs, wait for all of them to end, close them; return what they ended with. */
export async function inTabs(pages, browser, urls) {
  pages.clear();
  const tabs = await browser.open(urls);
  const ends = await pages.ended(urls.length);
  const failed = ends.find(({ kind }) => kind === "error");
  if (failed) throw new Error(`a page failed: ${failed.value}`);
  await browser.close(tabs);
  return ends.map(({ value }) => value);
}
