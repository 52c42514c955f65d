/** A store in memory, with one transaction at a time, which can fail and be looked into. */

export class MemoryStore {
  rows = new Map();
  isMade = false;
  commits = 0;
  fails = () => false; // called before a transaction is committed
  #last = Promise.resolve();

  transact(work, isNew) {
    const run = this.#last.then(() => this.#run(work, isNew));
    this.#last = run.catch(() => {});
    return run;
  }

  async #run(work, isNew) {
    const changed = new Map(this.rows);
    const result = await work({
      get: async (name) => changed.get(name),
      list: async (prefix) =>
        [...changed].filter(([name]) => name.startsWith(prefix)).sort(),
      put: (name, text) => changed.set(name, text),
      remove: (name) => changed.delete(name),
    });
    if (this.fails()) throw new DOMException("no room", "QuotaExceededError");
    this.rows = changed;
    this.isMade ||= isNew;
    this.commits++;
    return result;
  }
}
