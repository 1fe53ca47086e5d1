import { StoreUnavailable, ValuesRefused } from '../database/errors.js';
import { charactersOf, isSamePlant, type StoredPlant } from './plant.columns.js';

/** created: stored now. repeated: the same plant was stored before. conflict: another plant has the id. */
export type CreateResult = 'created' | 'repeated' | 'conflict';

/** What became of one row of a batch: whether this batch stored it, and the plant that has its id now. */
export interface WrittenRow {
  isNew: boolean;
  stored: StoredPlant;
}

/**
 * Stores plants, each where no plant has its id, in one commit.
 *
 * @param plants with different ids, in ascending order: two batches that insert the same ids in different orders would
 *   wait for each other.
 * @param deadline when to give up, in milliseconds of performance.now().
 * @returns what became of each, in the same order.
 * @throws {ValuesRefused} where the database refuses one of them, and so stored none.
 * @throws {StoreUnavailable} where it is not known whether they are stored.
 */
export type WriteBatch = (plants: StoredPlant[], deadline: number) => Promise<WrittenRow[]>;

export interface GroupCommitLimits {
  /** Rows and characters of text in one statement; a single larger plant goes alone. */
  batchRows: number;
  batchCharacters: number;
  /** Statements on their way at once. */
  statements: number;
  /** Creates, and characters of text, that may wait; beyond that a create is refused. */
  waitingCreates: number;
  waitingCharacters: number;
  /** The longest that a create may take, its waiting included, in milliseconds. */
  timeoutMs: number;
}

interface Waiting {
  plant: StoredPlant;
  characters: number;
  /** When it must be on its way, and when it must be answered, in milliseconds of performance.now(). */
  sendBy: number;
  deadline: number;
  resolve: (result: CreateResult) => void;
  reject: (error: Error) => void;
}

/**
 * Group commit: a commit costs the database about the same for one row as for many, so while a statement is on its way,
 * the creates that arrive wait together and go out in the next one. A create that finds nothing on its way goes out at
 * once; nothing ever waits for company.
 */
export class GroupCommit {
  #waiting: Waiting[] = [];
  #waitingCharacters = 0;
  #underWay = 0;
  #expiry: NodeJS.Timeout | undefined;

  constructor(
    private readonly write: WriteBatch,
    private readonly limits: GroupCommitLimits,
  ) {}

  /** How many creates wait for a statement. */
  get waiting(): number {
    return this.#waiting.length;
  }

  /**
   * @returns what became of the plant, once it is committed.
   * @throws {StoreUnavailable} where too many creates wait already, or the time limit ends.
   * @throws {ValuesRefused} where the database refuses this plant.
   */
  create(plant: StoredPlant): Promise<CreateResult> {
    const { waitingCreates, waitingCharacters, timeoutMs } = this.limits;
    const characters = charactersOf(plant);
    // A plant that is larger than everything that may wait is still taken when nothing waits.
    const isFull =
      this.#waiting.length > 0 &&
      (this.#waiting.length >= waitingCreates || this.#waitingCharacters + characters > waitingCharacters);
    if (isFull) {
      return Promise.reject(new StoreUnavailable('The store is overloaded'));
    }
    return new Promise((resolve, reject) => {
      const now = performance.now();
      // Half of the time is for the statement. Were the longest waiting sent with next to none left, a store with more to
      // do than it can would be busy with statements that are given up, and finish none.
      const sendBy = now + timeoutMs / 2;
      this.#waiting.push({ plant, characters, sendBy, deadline: now + timeoutMs, resolve, reject });
      this.#waitingCharacters += characters;
      this.#send();
    });
  }

  #send(): void {
    this.#expire();
    while (this.#underWay < this.limits.statements && this.#waiting.length > 0) {
      const batch = this.#takeBatch();
      this.#underWay++;
      void this.#commit(batch).finally(() => {
        this.#underWay--;
        this.#send();
      });
    }
    this.#watchExpiry();
  }

  #takeBatch(): Waiting[] {
    const { batchRows, batchCharacters } = this.limits;
    let rows = 0;
    let characters = 0;
    while (rows < batchRows && rows < this.#waiting.length) {
      characters += (this.#waiting[rows] as Waiting).characters;
      if (characters > batchCharacters && rows > 0) break;
      rows++;
    }
    return this.#remove(rows);
  }

  #remove(count: number): Waiting[] {
    const removed = this.#waiting.splice(0, count);
    for (const { characters } of removed) this.#waitingCharacters -= characters;
    return removed;
  }

  /** Settles every create of the batch, whatever happens. */
  async #commit(batch: Waiting[]): Promise<void> {
    // An id that stands in the batch more than once goes out once, for the first; the others are judged by what is
    // stored then, as if they had come later.
    const groups = groupById(batch);
    try {
      const rows = await this.write(
        groups.map(([first]) => first.plant),
        (batch[0] as Waiting).deadline,
      );
      groups.forEach((group, index) => {
        const row = rows[index];
        if (row === undefined) throw new Error('A batch came back without one of its rows');
        for (const create of group) {
          const isCreator = row.isNew && create === group[0];
          create.resolve(
            isCreator ? 'created' : isSamePlant(row.stored, create.plant) ? 'repeated' : 'conflict',
          );
        }
      });
    } catch (error) {
      // One refused row undoes its statement: the halves are sent alone until it stands alone.
      if (error instanceof ValuesRefused && batch.length > 1) {
        const middle = batch.length >> 1;
        await this.#commit(batch.slice(0, middle));
        await this.#commit(batch.slice(middle));
        return;
      }
      for (const create of batch) create.reject(error as Error);
    }
  }

  /** Refuses the creates that did not get their turn in time. */
  #expire(): void {
    const now = performance.now();
    let expired = 0;
    while ((this.#waiting[expired]?.sendBy ?? Infinity) <= now) expired++;
    if (expired === 0) return;
    for (const create of this.#remove(expired)) {
      create.reject(new StoreUnavailable('The store did not get to it in time'));
    }
  }

  /** One timer for the whole line, set while creates wait: its head is always the oldest. */
  #watchExpiry(): void {
    const head = this.#waiting[0];
    if (head === undefined || this.#expiry !== undefined) return;
    this.#expiry = setTimeout(
      () => {
        this.#expiry = undefined;
        this.#expire();
        this.#watchExpiry();
      },
      Math.max(1, Math.ceil(head.sendBy - performance.now())),
    ).unref();
  }
}

/** @returns the creates in ascending order of their ids; those of the same id together, as they came. */
function groupById(creates: Waiting[]): [Waiting, ...Waiting[]][] {
  const groups: [Waiting, ...Waiting[]][] = [];
  for (const create of creates.toSorted((a, b) => compare(a.plant.id, b.plant.id))) {
    const last = groups.at(-1);
    if (last?.[0].plant.id === create.plant.id) last.push(create);
    else groups.push([create]);
  }
  return groups;
}

function compare(a: bigint, b: bigint): number {
  return a < b ? -1 : Number(a > b);
}
