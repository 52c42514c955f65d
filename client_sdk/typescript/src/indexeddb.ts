/** A store in IndexedDB: one readwrite transaction at a time for all pages of an origin. */

import { LedgerError } from "./errors.js";
import type { Rows, Store } from "./store.js";
import { unicodeText } from "./validate.js";

const TABLE = "rows";
const PADDING = "padding"; // the name of a row that no ledger asks for
// More than the 32,768 bytes of a block of Chromium's log, less than what goes to a file of its own.
const PADDING_BYTES = 40_000;

/**
 * Keeps a ledger in an IndexedDB database of that name.
 *
 * It lives as long as the browser keeps the origin's storage: clearing site data deletes it, and
 * a browser may delete it when storage is short or the origin was not visited for a while.
 */
export class IndexedDbStore implements Store {
  private isPadded = false;

  constructor(readonly name = "ldpspatial") {
    unicodeText("name", name);
  }

  /** Tell whether the browser has promised not to delete the origin's storage of its own accord. */
  async isPersistent(): Promise<boolean> {
    return !!(await navigator.storage?.persisted?.());
  }

  /** See `Store`; making the store asks the browser not to delete it. */
  async transact<T>(work: (rows: Rows) => Promise<T>, isNew: boolean): Promise<T> {
    if (isNew) await navigator.storage?.persist?.();
    const database = await this.open(isNew);
    try {
      const transaction = database.transaction(TABLE, "readwrite", { durability: "strict" });
      if (transaction.durability !== "strict") {
        throw new LedgerError("this browser does not say when a change is on the disk");
      }
      // Only what `complete` has confirmed is on the disk.
      const committed = new Promise((resolve, reject) => {
        transaction.oncomplete = resolve;
        transaction.onabort = () => reject(transaction.error);
      });
      const table = transaction.objectStore(TABLE);
      const isPadding = !isNew && !this.isPadded;
      if (isPadding) pad(table);
      const worked = work(rowsOf(table));
      worked.catch(() => abort(transaction));
      const [found] = await Promise.all([worked, committed]);
      this.isPadded ||= isPadding;
      return found;
    } finally {
      database.close();
    }
  }

  private open(isNew: boolean): Promise<IDBDatabase> {
    const request = indexedDB.open(this.name, 1);
    request.onupgradeneeded = () => {
      // The database was not there. Opening must not make one: that would refill the budget.
      if (isNew) request.result.createObjectStore(TABLE);
      else request.transaction!.abort();
    };
    return result(request).catch((error) => {
      if (isNew || (error as Error | null)?.name !== "AbortError") throw error;
      throw new LedgerError("there is no ledger here: it was never installed, or was deleted");
    });
  }
}

/**
 * Write more than a block of the log that Chromium keeps a database in.
 *
 * A kill amid a write may leave a record there that announces more than was written. What is written
 * behind it counts as its rest, and is forgotten without a word at the start after the next, as long
 * as the log ends before its block does. Once it goes on beyond, Chromium sees the damage and drops
 * the database; then there is no ledger, and a device refuses. The bytes are random, or the browser
 * would pack them.
 */
function pad(table: IDBObjectStore): void {
  table.put(crypto.getRandomValues(new Uint8Array(PADDING_BYTES)), PADDING);
}

function rowsOf(table: IDBObjectStore): Rows {
  return {
    get: (name) => result(table.get(name) as IDBRequest<string | undefined>),
    async list(prefix) {
      const range = IDBKeyRange.bound(prefix, `${prefix}\uffff`);
      const names = result(table.getAllKeys(range));
      const texts = await result(table.getAll(range) as IDBRequest<string[]>);
      return (await names).map((name, i) => [name as string, texts[i]!]);
    },
    put: (name, text) => void table.put(text, name),
    remove: (name) => void table.delete(name),
  };
}

function result<T>(request: IDBRequest<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}

function abort(transaction: IDBTransaction): void {
  try {
    transaction.abort();
  } catch {
    // It has ended already.
  }
}
