/**
 * Grid: a public square cut into cells, and which cell a position falls in.
 *
 * Edges are whole numbers of 1e-7 degree, or of 1e-7 plane units, so that every language puts a
 * position into the same cell. A position outside the square belongs to the nearest cell of the
 * square: staying silent would tell that the user is elsewhere.
 */

import { ParameterError, PositionError } from "./errors.js";
import { MAX_CELLS, shown, wholeNumber } from "./validate.js";

const UNIT = 1e7; // grid units per degree or per plane unit
const TURN = 360 * UNIT;
const MAX_LATITUDE = 85 * UNIT;
const PLANE_LIMIT = 1e8 * UNIT;
const PLANE_FAR = 4e8; // every plane square ends at 3e8

export type Cell = readonly [row: number, col: number];
export type GridKind = "geographic" | "plane";

/**
 * A square (or box) of cells x cells cells. Rows run south to north, columns west to east.
 *
 * `south`, `west`, `height` and `width` are whole numbers of 1e-7 degree or plane unit.
 */
export class Grid {
  /** @throws ParameterError where a value breaks its rule (docs/protocol.md, section 1). */
  constructor(
    readonly kind: GridKind,
    readonly south: number,
    readonly west: number,
    readonly height: number,
    readonly width: number,
    readonly cells: number,
  ) {
    const isPlane = kind === "plane";
    if (!isPlane && kind !== "geographic") {
      throw new ParameterError(`kind must be geographic or plane, got ${shown(kind)}`);
    }
    const least = 2 * wholeNumber("cells", cells, 1, MAX_CELLS); // a cell has its centre within
    const limit = isPlane ? PLANE_LIMIT : MAX_LATITUDE;
    wholeNumber("south", south, -limit, limit);
    wholeNumber("west", west, isPlane ? -limit : -TURN / 2, isPlane ? limit : TURN / 2 - 1);
    wholeNumber("height", height, least, isPlane ? 2 * limit : limit - south);
    wholeNumber("width", width, least, isPlane ? 2 * limit : TURN / 2);
  }

  /**
   * Return [row, col] of the cell nearest to a position in degrees; on a plane grid pass y, x.
   *
   * @throws PositionError where it is not finite, or no latitude and longitude. It is not repeated.
   */
  cell(lat: number, lon: number): Cell {
    const [dy, dx] = this.offset(lat, lon);
    return [this.line(dy, this.height), this.line(dx, this.width)];
  }

  /** Tell whether a position lies in the square, its outer edge included. */
  contains(lat: number, lon: number): boolean {
    const [dy, dx] = this.offset(lat, lon);
    return dy >= 0 && dy <= this.height && dx >= 0 && dx <= this.width;
  }

  /** Return the position relative to the south-west corner, in units. */
  private offset(lat: number, lon: number): [dy: number, dx: number] {
    const dy = this.units("lat", lat, 90) - this.south;
    const dx = this.units("lon", lon, 360) - this.west;
    if (this.kind === "plane") return [dy, dx];
    // The turn whose middle is the middle of the square, so that squares across the antimeridian
    // work and a position beyond the west edge is nearest to the west edge.
    const half = Math.floor((TURN - this.width) / 2);
    return [dy, ((((dx + half) % TURN) + TURN) % TURN) - half];
  }

  /** Round a coordinate half up to grid units: one multiplication and addition, not fused. */
  private units(name: string, value: unknown, limit: number): number {
    const most = this.kind === "plane" ? Number.MAX_VALUE : limit;
    if (typeof value !== "number" || !(Math.abs(value) <= most)) {
      throw new PositionError(`${name} must be a number from -${most} to ${most}`);
    }
    return Math.floor(Math.min(Math.max(value, -PLANE_FAR), PLANE_FAR) * UNIT + 0.5);
  }

  /** Return floor(offset * cells / side) for an offset limited to the side, at most cells - 1. */
  private line(offset: number, side: number): number {
    const within = Math.min(Math.max(offset, 0), side);
    // The product may pass 2^53, so it is formed a bit of `cells` at a time: the rest stays below
    // the side, and three sides stay below 2^53.
    let quotient = 0;
    let rest = 0;
    for (let bit = MAX_CELLS; bit >= 1; bit /= 2) {
      rest = 2 * rest + (Math.floor(this.cells / bit) % 2) * within;
      quotient = 2 * quotient + Math.floor(rest / side);
      rest %= side;
    }
    return Math.min(quotient, this.cells - 1);
  }
}
