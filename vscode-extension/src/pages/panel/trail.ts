/** Where a reader was: the way back and forward, which a panel has no browser for. */

export class Trail {
  private readonly places: string[];
  private position = 0;

  constructor(start: string) {
    this.places = [start];
  }

  get here(): string {
    return this.places[this.position] ?? "";
  }

  /** A new place: what lay ahead is forgotten. */
  visit(place: string): void {
    if (place !== this.here) {
      this.places.splice(this.position + 1, Infinity, place);
      this.position += 1;
    }
  }

  /** Another address of the same place. */
  amend(place: string): void {
    this.places[this.position] = place;
  }

  /** A step back (-1) or forward (1); the place there, or undefined at the end. */
  step(by: -1 | 1): string | undefined {
    const place = this.places[this.position + by];
    if (place !== undefined) {
      this.position += by;
    }
    return place;
  }
}
