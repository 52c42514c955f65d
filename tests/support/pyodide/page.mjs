// One page: runs a Python script with the client in its memory and folders of the disk mounted.
//   node page.mjs NODE_MODULES SOURCES MOUNTS < script.py
// SOURCES and MOUNTS: {"folder of the page": "folder of the disk"}; sources are copied in.
import fs, { readFileSync, readdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { DirectoryHandle } from "./directory.mjs";

const [modules, sources, mounts] = process.argv.slice(2);
const load = (name) => import(pathToFileURL(join(modules, name)));
const { loadPyodide } = await load("pyodide/pyodide.mjs");

// A browser keeps one database and one directory for all pages; these last as long as the process.
await load("fake-indexeddb/auto/index.mjs");
globalThis.directory = new DirectoryHandle();

async function page() {
  const py = await loadPyodide();
  // Not by an option: Pyodide itself, as it starts, uses what Python 3.14 deprecates.
  py.runPython("import warnings; warnings.simplefilter('error')");
  for (const [inside, outside] of Object.entries(JSON.parse(sources))) {
    const names = readdirSync(outside, { recursive: true });
    for (const name of names.filter((name) => name.endsWith(".py"))) {
      const place = join(inside, name);
      py.FS.mkdirTree(dirname(place));
      py.FS.writeFile(place, readFileSync(join(outside, name)));
    }
  }
  for (const [inside, outside] of Object.entries(JSON.parse(mounts))) {
    py.FS.mkdirTree(inside);
    py.FS.mount(py.FS.filesystems.NODEFS, { root: outside }, inside);
  }
  return py;
}

function end(error) {
  // os._exit comes as an error with a status. Node would print the source's line: a megabyte.
  if (error.status === undefined) console.error(error.message);
  process.exit(error.status ?? 1);
}

process.on("uncaughtException", end);
globalThis.anotherPage = page;
globalThis.fs = fs; // the object through which NODEFS reaches the disk
await page().then((py) => py.runPythonAsync(readFileSync(0, "utf8"))).catch(end);
