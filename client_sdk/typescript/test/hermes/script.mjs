/** All vectors in Hermes, which has no TextDecoder, no crypto, no classes and no files. */

/* global print */

import documents from "../../../vectors/documents.json";
import draws from "../../../vectors/draws.json";
import events from "../../../vectors/events.json";
import positions from "../../../vectors/positions.json";
import reports from "../../../vectors/reports.json";
import series from "../../../vectors/series.json";
import tables from "../../../vectors/tables.json";
import visible from "../../../schema/visible-1.json";
import * as client from "../support/client.mjs";
import { runVectors, summary } from "../support/vectors.mjs";

const vectors = { documents, draws, events, positions, reports, series, tables };
print(JSON.stringify(summary("Hermes", runVectors(client, vectors, visible))));
