/** What keeps a ledger: texts under names, changed in transactions. */

/** The rows of one transaction. */
export interface Rows {
  /** Return the text of a name, or undefined. */
  get(name: string): Promise<string | undefined>;
  /** Return names and texts of all rows whose name begins so, in ascending order of the names. */
  list(prefix: string): Promise<[name: string, text: string][]>;
  put(name: string, text: string): void;
  remove(name: string): void;
}

/**
 * A place for one ledger: IndexedDB of a browser (`IndexedDbStore`), or one that the app passes.
 *
 * No transaction may begin before the one before it has ended, in whatever page, worker, thread or
 * process it runs. `work` awaits nothing but the rows; it changes them without waiting in between.
 */
export interface Store {
  /**
   * Run `work`, write all that it changed at once, and resolve when that is durable.
   *
   * Where `work` throws, or writing fails, nothing is changed and the promise rejects. A store
   * that is not there has no rows, and only `isNew` may make it.
   */
  transact<T>(work: (rows: Rows) => Promise<T>, isNew: boolean): Promise<T>;
}
