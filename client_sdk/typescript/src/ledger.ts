/**
 * What this device has spent, kept as long as its store is (docs/protocol.md, section 8).
 *
 * A report and its spending are written in one transaction, and the report is handed out only when
 * the store has confirmed it. So no report leaves uncounted; at worst one is counted and waits.
 * The store holds whole micro-epsilons, keyed hashes of readings, what was joined, and the reports
 * not yet acknowledged: no clock that a budget depends on, no name of the user, no position.
 */

import type { ByteSource } from "./entropy.js";
import { AlreadyGivenError, BudgetError, ClientError, ParameterError } from "./errors.js";
import { LedgerError, LedgerUnavailableError } from "./errors.js";
import { eventName, KEY_BYTES } from "./events.js";
import { digestOf } from "./sha256.js";
import type { Rows, Store } from "./store.js";
import { fromHex, toHex } from "./utf8.js";
import { MICRO, microEpsilons, shown } from "./validate.js";

const MAX_CAP = 1_000_000; // epsilon
const SEAL = 16; // hexadecimal digits of a row's checksum
const PENDING = "pending/";
const EVENT = "event/";
const JOINED = "joined/";
const PAUSE = "pause";

/** What a device may spend over all collections and all time, and on any one of them. */
export interface Caps {
  capEpsilon: number;
  collectionCapEpsilon?: number | undefined;
}

/** What one report costs, and the account that it is counted under. */
export interface Debit {
  /** Digest of the collection or series. */
  account: string;
  microEpsilon: number;
  /** What the collection or series lets one device spend on it, in micro-epsilons. */
  limit: number;
}

/** Until when nothing is sent after a failure: for all uploaders of a ledger. */
export interface Pause {
  failures: number; // in a row
  since: number; // seconds since 1970
  notBefore: number;
}

interface Head {
  cap: number;
  collectionCap: number;
  key: string; // of the names of readings
  spent: { [account: string]: number };
  drawn: number;
  waiting: number;
  discarded: number;
  events: number;
}

interface Waiting {
  body: string;
  event: string | null; // the name of its row
  drawn: number; // how many were drawn before
}

/** What was joined: a document, and of a series the windows that this device answers. */
export interface Joined {
  document: string;
  windows: number[];
}

/** The rows of one transaction, sealed, and the head among them. */
class Books {
  constructor(
    private readonly rows: Rows,
    readonly head: Head,
  ) {}

  async get<T>(name: string): Promise<T | undefined> {
    const text = await this.rows.get(name);
    return text === undefined ? text : unsealed<T>(name, text);
  }

  async list<T>(prefix: string): Promise<[name: string, value: T][]> {
    const found = await this.rows.list(prefix);
    return found.map(([name, text]) => [name.slice(prefix.length), unsealed<T>(name, text)]);
  }

  put(name: string, value: unknown): void {
    this.rows.put(name, sealed(name, value));
  }

  remove(name: string): void {
    this.rows.remove(name);
  }

  /** Put the head back, which has been changed. */
  close(): void {
    this.put("head", this.head);
  }

  /** Return what is spent on an account, or on all. */
  spent(account?: string): number {
    const { spent } = this.head;
    if (account !== undefined) return spent[account] ?? 0;
    return Object.keys(spent).reduce((sum, name) => sum + spent[name]!, 0);
  }

  /** Return what is left under the caps and a limit, 0 if nothing is. */
  left(account?: string, limit = Infinity): number {
    const ofAll = this.head.cap - this.spent();
    if (account === undefined) return ofAll;
    const here = this.spent(account);
    return Math.max(Math.min(ofAll, this.head.collectionCap - here, limit - here), 0);
  }

  /** Return the name of the row of an event. */
  eventRow(account: string, event: string): string {
    return EVENT + toHex(eventName(fromHex(this.head.key), account, event));
  }

  /** Delete reports that wait; their events record only that they were given. */
  async forget(ids: readonly string[], isDiscarded: boolean): Promise<void> {
    for (const id of ids) {
      const held = await this.get<Waiting>(PENDING + id);
      if (!held) continue;
      this.remove(PENDING + id);
      if (held.event) this.put(held.event, "");
      this.head.waiting--;
      if (isDiscarded) this.head.discarded++;
    }
    this.close();
  }
}

/** The record of spending of one device, in a store that pages and processes may share. */
export class Ledger {
  constructor(private readonly store: Store) {}

  /** Make a new, unspent ledger: only when the user agrees to take part, never on opening. */
  static async create(store: Store, caps: Caps, bytes: ByteSource): Promise<Ledger> {
    const cap = microEpsilons("capEpsilon", caps.capEpsilon, MAX_CAP);
    const ofOne = caps.collectionCapEpsilon ?? caps.capEpsilon;
    const collectionCap = microEpsilons("collectionCapEpsilon", ofOne, MAX_CAP);
    if (collectionCap > cap) {
      throw new ParameterError("collectionCapEpsilon must not exceed capEpsilon");
    }
    const key = toHex(bytes(KEY_BYTES));
    const counts = { drawn: 0, waiting: 0, discarded: 0, events: 0 };
    const head: Head = { cap, collectionCap, key, spent: {}, ...counts };
    await transact(store, true, async (rows) => {
      if ((await rows.get("head")) !== undefined) {
        throw new LedgerError("there is a ledger here: open it");
      }
      new Books(rows, head).close();
    });
    return new Ledger(store);
  }

  /** Read all of it and check that nothing is damaged or missing. */
  verify(): Promise<void> {
    return this.change(async (books) => {
      const waiting = await books.list(PENDING);
      const events = await books.list(EVENT);
      await books.list(JOINED);
      const { head } = books;
      if (waiting.length !== head.waiting || events.length !== head.events || books.left() < 0) {
        throw damaged();
      }
    });
  }

  /**
   * Debit one report, draw it, write both down, and only then return its body.
   *
   * `draw` returns id and body. An event gives the report that waits for it, and is never drawn
   * for twice. Throws a BudgetError where a cap would be exceeded, with nothing drawn.
   */
  spend(debit: Debit, event: string | undefined, draw: () => [string, string]): Promise<string> {
    return this.change(async (books) => {
      const { account, microEpsilon, limit } = debit;
      const { head } = books;
      const name = event === undefined ? null : books.eventRow(account, event);
      const id = name && (await books.get<string>(name));
      if (id) return (await books.get<Waiting>(PENDING + id))?.body ?? lost();
      if (id === "") throw new AlreadyGivenError("the report of this event has been dealt with");

      const left = books.left(account, limit);
      if (microEpsilon > left) {
        throw new BudgetError(
          `${microEpsilon / MICRO} epsilon asked, ${left / MICRO} left: no report was given`,
        );
      }
      const [drawnId, body] = draw();
      const held: Waiting = { body, event: name, drawn: head.drawn++ };
      books.put(PENDING + drawnId, held);
      head.waiting++;
      head.spent[account] = books.spent(account) + microEpsilon;
      if (name) {
        books.put(name, drawnId);
        head.events++;
      }
      books.close();
      return body;
    });
  }

  /** Tell whether `spend` would draw: for a new event, and with budget for it. */
  wouldDraw({ account, microEpsilon, limit }: Debit, event: string): Promise<boolean> {
    return this.change(async (books) => {
      const given = await books.get(books.eventRow(account, event));
      return given === undefined && microEpsilon <= books.left(account, limit);
    });
  }

  /** Keep what the device takes part in; `choose` draws the windows, once. */
  join(digest: string, document: string, choose: () => number[]): Promise<void> {
    return this.change(async (books) => {
      if (await books.get(JOINED + digest)) return;
      const joined: Joined = { document, windows: choose() };
      books.put(JOINED + digest, joined);
    });
  }

  joined(digest: string): Promise<Joined | undefined> {
    return this.change((books) => books.get<Joined>(JOINED + digest));
  }

  /** Return id and body of all reports not yet acknowledged, in the order of the ids. */
  outbox(): Promise<[id: string, body: string][]> {
    return this.change(async (books) => {
      const waiting = await books.list<Waiting>(PENDING);
      return waiting.map(([id, { body }]) => [id, body]);
    });
  }

  isPending(id: string): Promise<boolean> {
    return this.change(async (books) => !!(await books.get(PENDING + id)));
  }

  forget(ids: readonly string[], isDiscarded: boolean): Promise<void> {
    return this.change((books) => books.forget(ids, isDiscarded));
  }

  /** Discard what waits beyond `keep` reports, the newest first; return how many. */
  discardNewest(keep: number): Promise<number> {
    return this.change(async (books) => {
      const surplus = Math.max(books.head.waiting - keep, 0);
      if (surplus > 0) {
        const waiting = await books.list<Waiting>(PENDING);
        waiting.sort(([, a], [, b]) => b.drawn - a.drawn);
        await books.forget(waiting.slice(0, surplus).map(([id]) => id), true);
      }
      return surplus;
    });
  }

  /** Return a number that the head of the ledger holds. */
  count(name: "waiting" | "discarded"): Promise<number> {
    return this.change(async ({ head }) => head[name]);
  }

  spent(account?: string): Promise<number> {
    return this.change(async (books) => books.spent(account));
  }

  remaining(account?: string): Promise<number> {
    return this.change(async (books) => books.left(account));
  }

  /** Return the pause that `change` makes of the one that is held; undefined is none. */
  pause(change: (held: Pause | undefined) => Pause | undefined): Promise<Pause | undefined> {
    return this.change(async (books) => {
      const pause = change(await books.get<Pause>(PAUSE));
      if (pause) books.put(PAUSE, pause);
      else books.remove(PAUSE);
      return pause;
    });
  }

  private change<T>(work: (books: Books) => Promise<T>): Promise<T> {
    return transact(this.store, false, async (rows) => {
      const text = await rows.get("head");
      if (text === undefined) {
        throw new LedgerError("there is no ledger here: it was never installed, or was deleted");
      }
      return work(new Books(rows, unsealed<Head>("head", text)));
    });
  }
}

/** Run a transaction of a store; what is not our own error is one of the store. */
async function transact<T>(
  store: Store,
  isNew: boolean,
  work: (rows: Rows) => Promise<T>,
): Promise<T> {
  try {
    return await store.transact(work, isNew);
  } catch (error) {
    if (error instanceof ClientError) throw error;
    const reason = shown((error as Error | null)?.name);
    throw new LedgerUnavailableError(`the ledger cannot be used just now: ${reason}`);
  }
}

function sealed(name: string, value: unknown): string {
  const text = JSON.stringify(value);
  return seal(name, text) + text;
}

function unsealed<T>(name: string, row: string): T {
  const text = String(row).slice(SEAL);
  if (seal(name, text) + text !== row) throw damaged();
  return JSON.parse(text);
}

/** A checksum, which stops accidents; not a person who edits the store. */
function seal(name: string, text: string): string {
  return digestOf(name + text).slice(0, SEAL);
}

function damaged(): LedgerError {
  return new LedgerError("the ledger is damaged: stop reporting, and do not install anew");
}

function lost(): never {
  throw damaged();
}
