/**
 * What can go wrong on the device.
 *
 *     ClientError
 *     ├── ParameterError     a bad value for a parameter
 *     ├── PositionError      a position is not valid (the message never repeats it)
 *     ├── CollectionError    a document or report is malformed, altered, not private
 *     ├── BudgetError        the device has spent what it may spend
 *     ├── AlreadyGivenError  the reading has had its report
 *     ├── NotAskedError      the device does not answer this window of a series
 *     ├── EntropyError       there is no secure source of random bytes
 *     └── LedgerError        the record of spending cannot be read or written
 *         └── LedgerUnavailableError  it cannot be used just now: try again later
 *
 * No message ever repeats a location: error texts end up in crash reports.
 */

/** Base of every error that this package throws on purpose. */
export class ClientError extends Error {
  override name = "ClientError";

  constructor(message: string) {
    super(message);
    // Compiled to ES5, Error gives an object of its own and every instanceof would fail.
    Object.setPrototypeOf(this, new.target.prototype);
  }
}

/** A parameter breaks its rule; the message names field, rule and value. */
export class ParameterError extends ClientError {
  override name = "ParameterError";
}

/** A position cannot be read; the message names field and rule, never the value. */
export class PositionError extends ClientError {
  override name = "PositionError";
}

/** A collection document or a report is malformed, altered or breaks its privacy claim. */
export class CollectionError extends ClientError {
  override name = "CollectionError";
}

/** The report would spend more than this device may spend. */
export class BudgetError extends ClientError {
  override name = "BudgetError";
}

/** The report of this event was given before, and was acknowledged or discarded since. */
export class AlreadyGivenError extends ClientError {
  override name = "AlreadyGivenError";
}

/** The device does not answer the window of the series that its clock shows. */
export class NotAskedError extends ClientError {
  override name = "NotAskedError";
}

/** There is no secure source of random bytes, or it failed: nothing is drawn. */
export class EntropyError extends ClientError {
  override name = "EntropyError";
}

/** The ledger is missing, damaged or not durable: no report is given. */
export class LedgerError extends ClientError {
  override name: string = "LedgerError";
}

/** The ledger is not damaged and cannot be used just now: no room, no permission, closing. */
export class LedgerUnavailableError extends LedgerError {
  override name = "LedgerUnavailableError";
}
