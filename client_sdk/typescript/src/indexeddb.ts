/** A store in IndexedDB: one readwrite transaction at a time for all pages of an origin. */

import { LedgerError } from "./errors.js";
import type { Rows, Store } from "./store.js";
import { unicodeText } from "./validate.js";

const TABLE = "rows";

/**
 * Keeps a ledger in an IndexedDB database of that name.
 *
 * It lives as long as the browser keeps the origin's storage: clearing site data deletes it, and
 * a browser may delete it when storage is short or the origin was not visited for a while.
 */
export class IndexedDbStore implements Store {
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
      const worked = work(rowsOf(transaction.objectStore(TABLE)));
      worked.catch(() => abort(transaction));
      return (await Promise.all([worked, committed]))[0];
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
