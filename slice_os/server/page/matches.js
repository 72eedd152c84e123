// Matches in memory: those above a threshold, and how many of each name, without looking at each.
export const STEPS = 200; // places of the slider in [0, 1]
const FINE = 10_000; // buckets in which they are sorted; a multiple of STEPS

/** Matches of one number, degrees or probabilities. */
export class Matches {
  /** `number` names it: "degree" or "probability". */
  constructor(number) {
    this.number = number;
    this.rows = [];
    this.fine = new Uint16Array(1024);
    this.names = new Map();
    this.all = new Uint32Array(STEPS + 1);
    this.orders = new Map();
    this.texts = new Map();
  }

  /** Count a name from now on, even if nothing is found. */
  know(name) {
    if (!this.names.has(name)) this.names.set(name, new Uint32Array(STEPS + 1));
    return this.names.get(name);
  }

  /** Take a match as the server sends it. */
  add(row) {
    if (this.rows.length === this.fine.length) {
      const larger = new Uint16Array(2 * this.fine.length);
      larger.set(this.fine);
      this.fine = larger;
    }
    for (const key of ["name", "phrase", "document"]) row[key] = this.kept(row[key]);
    const fine = Math.min(FINE, Math.floor(row[this.number] * FINE + 1e-6));
    const step = Math.floor(fine / (FINE / STEPS));
    this.fine[this.rows.length] = fine;
    this.know(row.name)[step] += 1;
    this.all[step] += 1;
    this.rows.push(row);
    this.orders.clear();
  }

  /** Return a text as it is kept once, since two hundred thousand matches have few names. */
  kept(text) {
    const known = this.texts.get(text);
    if (known === undefined) this.texts.set(text, text);
    return known ?? text;
  }

  /** Return how many there are in each step, of one name or of all. */
  histogram(name) {
    return name === undefined ? this.all : this.know(name);
  }

  /** Return how many reach a threshold, of one name or of all. */
  count(threshold, name) {
    const bins = this.histogram(name);
    let sum = 0;
    for (let step = stepOf(threshold); step <= STEPS; step += 1) sum += bins[step];
    return sum;
  }

  /** Return the numbers of rows, of one name or of all, best first: those above a threshold come first. */
  order(name) {
    if (!this.orders.has(name)) {
      const ends = new Uint32Array(FINE + 2);
      for (let n = 0; n < this.rows.length; n += 1) {
        if (name === undefined || this.rows[n].name === name) ends[FINE - this.fine[n] + 1] += 1;
      }
      for (let bucket = 1; bucket < ends.length; bucket += 1) ends[bucket] += ends[bucket - 1];
      const order = new Uint32Array(ends.at(-1));
      for (let n = 0; n < this.rows.length; n += 1) {
        if (name === undefined || this.rows[n].name === name) order[ends[FINE - this.fine[n]]++] = n;
      }
      this.orders.set(name, order);
    }
    return this.orders.get(name);
  }
}

/** Return the step of the slider at a threshold. */
export const stepOf = (threshold) => Math.round(threshold * STEPS);
