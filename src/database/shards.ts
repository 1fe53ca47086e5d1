import type { Logger } from 'pino';
import { exampleIds, ONE_SHARD, shardMapOf, type ShardMap, type ShardRow } from './shard-map.js';

/** How long a failed create counts against its shard at least, if none succeeds after it. */
const FAILURE_COUNTS_MS = 5_000;

/** The shards of the table, and which of them can be written. A table that is not distributed is one shard. */
export class Shards {
  #map = ONE_SHARD;
  #rows = '[]';
  /** An id of one shard for each node, to look at. */
  #examples = [0n];
  /** The look at each node that is under way. */
  #looks: (Promise<boolean> | undefined)[] = [];
  /**
   * The shards that cannot be written, and when a create last failed there, in milliseconds of performance.now();
   * -Infinity if only a look did.
   */
  readonly #failedAt = new Map<number, number>();
  #onChange: (map: ShardMap) => void = () => undefined;

  /** @param look reads the table for an id; rejects if it cannot. */
  constructor(
    private readonly look: (id: bigint) => Promise<unknown>,
    private readonly logger: Logger,
  ) {}

  get count(): number {
    return this.#map.nodes.length;
  }

  /** How many shards can be written, as far as their latest statements tell. */
  get writable(): number {
    return this.count - this.#failedAt.size;
  }

  /** Whether a create failed at every shard just now, so that no look can say that creates would be stored. */
  get haveJustFailed(): boolean {
    return (
      this.writable === 0 &&
      [...this.#failedAt.values()].every((at) => performance.now() - at < FAILURE_COUNTS_MS)
    );
  }

  /** @param listener called whenever rows are stored in other places than before. */
  onChange(listener: (map: ShardMap) => void): void {
    this.#onChange = listener;
  }

  /** @param rows the shards as the database tells them now, in ascending order. */
  use(rows: readonly ShardRow[]): void {
    const text = JSON.stringify(rows);
    if (text === this.#rows) return;
    this.#rows = text;
    this.#map = shardMapOf(rows);
    const { nodes } = this.#map;
    const ids = exampleIds(this.#map);
    this.#examples = [...new Set(nodes)].map((node) => ids[nodes.indexOf(node)] as bigint);
    this.#looks = [];
    this.#failedAt.clear();
    if (this.count > 1) {
      this.logger.info(
        { shards: this.count, nodes: this.#examples.length },
        'The table is distributed; creates are grouped by shard',
      );
    }
    this.#onChange(this.#map);
  }

  /** A create of the shard was stored. */
  succeeded(shard: number): void {
    if (!this.#failedAt.delete(shard) || this.#failedAt.size > 0 || this.count === 1) return;
    this.logger.info({ shards: this.count }, 'Every shard can be written again');
  }

  /** A create of the shard failed through the database's fault. */
  failed(shard: number, at = performance.now()): void {
    const isFirst = this.#failedAt.size === 0;
    this.#failedAt.set(shard, at);
    if (isFirst && this.count > 1) void this.#tell();
  }

  /** Whether a create of some shard would be stored now, as far as shards can tell. */
  isWritable(): Promise<boolean> {
    return new Promise((resolve) => {
      const looks = this.#lookAtNodes().map(async (look) => (await look) && resolve(true));
      void Promise.all(looks).then(() => resolve(false));
    });
  }

  /** However many ask at once, a node is looked at once. */
  #lookAtNodes(): Promise<boolean>[] {
    return this.#examples.map((id, node) => {
      const looks = this.#looks;
      return (looks[node] ??= this.#lookAt(node, id).finally(() => (looks[node] = undefined)));
    });
  }

  /**
   * A look finds a node that cannot be reached and a shard that is locked; only the creates themselves find a full disk.
   * So a look that succeeds does not undo the failure of a create at once.
   *
   * @returns whether a shard of the node can be written.
   */
  async #lookAt(node: number, id: bigint): Promise<boolean> {
    const map = this.#map;
    const shards = [...map.nodes.keys()].filter((shard) => map.nodes[shard] === node);
    // Whoever asks has looked at a table that is one shard.
    const hasAnswered =
      this.count === 1 ||
      (await this.look(id).then(
        () => true,
        () => false,
      ));
    if (map !== this.#map) return hasAnswered;
    for (const shard of shards) {
      const failedAt = this.#failedAt.get(shard) ?? -Infinity;
      if (!hasAnswered) this.failed(shard, failedAt);
      else if (performance.now() - failedAt >= FAILURE_COUNTS_MS) this.succeeded(shard);
    }
    return shards.some((shard) => !this.#failedAt.has(shard));
  }

  /** Says once how many shards cannot be written, when the other nodes were looked at too. */
  async #tell(): Promise<void> {
    await Promise.all(this.#lookAtNodes());
    const { count, writable } = this;
    if (writable < count) this.logger.warn({ shards: count, writable }, 'Not every shard can be written');
  }
}
