/**
 * What this client answers to one request of `python -m client_sdk.conformance`.
 *
 * Requests are made by a program and well-formed, so JSON.parse will do for them; what they hold
 * goes to the client as it is. Written without classes and async functions, for engines without.
 */

/** Bytes in place of random ones, in whole groups of 7; it throws where they do not suffice. */
export function fixedEntropy(bytes) {
  const source = (count) => {
    if (source.used + count > bytes.length) throw new Error(NOT_ENOUGH);
    source.used += count;
    return bytes.slice(source.used - count, source.used);
  };
  source.used = 0;
  return source;
}

const NOT_ENOUGH = "the bytes do not suffice";
const NUMBERS = { NaN, Infinity, "-Infinity": -Infinity };

/** Return a number of a request, of which JSON cannot write some. */
export function double(number) {
  return typeof number === "string" && number in NUMBERS ? NUMBERS[number] : number;
}

/** Return what `make` draws from bytes, or null where they do not suffice. */
export function drawn(entropy, make) {
  try {
    return make(entropy);
  } catch (error) {
    if (error.message === NOT_ENOUGH) return null;
    throw error;
  }
}

/** Return the function that answers requests with the modules of a client. */
export function answerer(client) {
  const { Collection, Grid, Report, Sampler, Series, fromHex, toHex } = client;
  const tables = new Map();

  function collectionOf(text) {
    if (!tables.has(text)) {
      if (tables.size > 64) tables.clear();
      const made = Collection.fromJson(text);
      tables.set(text, { made, sampler: new Sampler(made.table) });
    }
    return tables.get(text);
  }

  function bytesOf(field, hex) {
    if (typeof hex === "string" && /^([0-9a-fA-F]{2})*$/.test(hex)) return fromHex(hex);
    throw new client.ParameterError(`${field} must be bytes in hexadecimal`);
  }

  function micro(value) {
    return client.wholeNumber("micro_epsilon", value, 1, 20000000);
  }

  function document(kind, { digest, max_micro_epsilon: most, ...request }) {
    const maxEpsilon = most == null ? undefined : micro(most) / 1e6;
    const made = kind.fromJson(textOf(request), { digest: digest ?? undefined, maxEpsilon });
    return { digest: made.digest, canonical: made.toJson() };
  }

  function textOf({ text, hex }) {
    if (hex === undefined) return text;
    const bytes = bytesOf("hex", hex);
    try {
      // The client reads texts: bytes are refused where they are decoded, or as a text.
      return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
    } catch (error) {
      throw new client.ParameterError("the text is not UTF-8");
    }
  }

  const operations = {
    collection: (request) => document(Collection, request),
    series: (request) => document(Series, request),
    window(request) {
      const made = Series.fromJson(textOf(request)).collection(request.window);
      return { digest: made.digest, canonical: made.toJson() };
    },
    windows({ windows, answers, entropy }) {
      const source = fixedEntropy(bytesOf("entropy", entropy));
      client.wholeNumber("windows", windows, 1, client.MAX_WINDOWS);
      client.wholeNumber("answers", answers, 1, windows);
      const chosen = drawn(source, () => client.chooseWindows(windows, answers, source));
      return { windows: chosen, bytes: source.used };
    },
    report(request) {
      const read = Report.fromJson(textOf(request));
      if (request.document != null) read.check(collectionOf(request.document).made);
      return { canonical: read.toJson() };
    },
    body: (request) => ({ body: Report.fromJson(textOf(request)).toBody() }),
    cell({ grid, at }) {
      const { kind, south_e7, west_e7, height_e7, width_e7, cells } = grid;
      const square = new Grid(kind, south_e7, west_e7, height_e7, width_e7, cells);
      const y = double(at[0]);
      const x = double(at[1]);
      return { cell: square.cell(y, x), inside: square.contains(y, x) };
    },
    draw({ document: text, cell, entropy }) {
      const { sampler } = collectionOf(text);
      const source = fixedEntropy(bytesOf("entropy", entropy));
      const output = drawn(source, () => sampler.draw(cell[0], cell[1], source));
      return { output, bytes: source.used };
    },
    bound({ micro_epsilon }) {
      const limbs = client.expBelow(micro(micro_epsilon));
      const digits = limbs.map((limb) => (limb + 0x1000000).toString(16).slice(1)).reverse();
      return { bound: digits.join("").replace(/^0+/, "") };
    },
    label(request) {
      client.label({ text: textOf(request) }, "text", 200);
      return {};
    },
    event({ key, digest, event }) {
      return { name: toHex(client.eventName(bytesOf("key", key), digest, event)) };
    },
  };

  return (request) => {
    const { op, id, ...rest } = request;
    const echoed = id === undefined ? {} : { id };
    try {
      return { ...echoed, ok: true, ...operations[op](rest) };
    } catch (error) {
      if (!(error instanceof client.ClientError)) throw error;
      return { ...echoed, ok: false, error: error.message };
    }
  };
}
