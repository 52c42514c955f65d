// A directory of the origin private file system, as far as Pyodide uses one: in memory, and with
// the browser's times, for lastModified is when a file was written and cannot be set.

class Handle {
  constructor(kind, name) {
    this.kind = kind;
    this.name = name;
  }
}

class FileHandle extends Handle {
  contents = new Uint8Array();
  lastModified = Date.now();

  async getFile() {
    return new File([this.contents], this.name, { lastModified: this.lastModified });
  }

  async createWritable() {
    let written = this.contents;
    return {
      write: async (contents) => {
        written = contents.slice();
      },
      close: async () => {
        this.contents = written;
        this.lastModified = Date.now();
      },
    };
  }
}

export class DirectoryHandle extends Handle {
  entries = new Map();

  constructor(name = "") {
    super("directory", name);
  }

  async *values() {
    yield* this.entries.values();
  }

  async resolve(handle) {
    for (const entry of this.entries.values()) {
      if (entry === handle) return [entry.name];
      const below = entry.kind === "directory" ? await entry.resolve(handle) : null;
      if (below) return [entry.name, ...below];
    }
    return null;
  }

  async getFileHandle(name) {
    return this.#get(name, () => new FileHandle("file", name));
  }

  async getDirectoryHandle(name) {
    return this.#get(name, () => new DirectoryHandle(name));
  }

  async removeEntry(name) {
    this.entries.delete(name);
  }

  #get(name, make) {
    if (!this.entries.has(name)) this.entries.set(name, make());
    return this.entries.get(name);
  }
}
