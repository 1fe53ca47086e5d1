import type { Logger } from 'pino';
import { exampleIds, ONE_SHARD, shardMapOf, type ShardMap, type ShardRow } from './shard-map.js';

/** For at least this long a failed create counts against its shard, unless one succeeds after it. */
const FAILURE_COUNTS_MS = 5_000;

/** The shards of the table and whether they can be written. A table that is not distributed is one shard. */
export class Shards {
  #map = ONE_SHARD;
  #rows = '[]';
  /** For each node, an id of one of its shards, to check the node with. */
  #examples = [0n];
  /** The check of each node that is under way. */
  #looks: (Promise<boolean> | undefined)[] = [];
  /**
   * The shards that cannot be written, and when a create last failed there, in milliseconds of performance.now(), or
   * -Infinity if only a check failed.
   */
  readonly #failedAt = new Map<number, number>();
  #onChange: (map: ShardMap) => void = () => undefined;

  /** @param look reads the table for an id, and rejects if it cannot. */
  constructor(
    private readonly look: (id: bigint) => Promise<unknown>,
    private readonly logger: Logger,
  ) {}

  get count(): number {
    return this.#map.nodes.length;
  }

  /** How many shards can be written, judging by their latest statements. */
  get writable(): number {
    return this.count - this.#failedAt.size;
  }

  /** Whether a create has just failed on every shard, so that no check can tell that creates would succeed. */
  get haveJustFailed(): boolean {
    return (
      this.writable === 0 &&
      [...this.#failedAt.values()].every((at) => performance.now() - at < FAILURE_COUNTS_MS)
    );
  }

  /** @param listener called whenever rows have moved to other shards or nodes. */
  onChange(listener: (map: ShardMap) => void): void {
    this.#onChange = listener;
  }

  /** @param rows the shards that the database has now, in ascending order. */
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

  /** Call this if a create on the shard succeeded. */
  succeeded(shard: number): void {
    if (!this.#failedAt.delete(shard) || this.#failedAt.size > 0 || this.count === 1) return;
    this.logger.info({ shards: this.count }, 'Every shard can be written again');
  }

  /** Call this if a create on the shard failed because of the database. */
  failed(shard: number, at = performance.now()): void {
    // Its statement may have begun when the table had more shards.
    if (shard >= this.count) return;
    const isFirst = this.#failedAt.size === 0;
    this.#failedAt.set(shard, at);
    if (isFirst && this.count > 1) void this.#tell();
  }

  /** Whether a create would succeed now on at least one shard, as far as checks can tell. */
  isWritable(): Promise<boolean> {
    return new Promise((resolve) => {
      const looks = this.#lookAtNodes().map(async (look) => (await look) && resolve(true));
      void Promise.all(looks).then(() => resolve(false));
    });
  }

  /** Concurrent callers share one check of each node. */
  #lookAtNodes(): Promise<boolean>[] {
    return this.#examples.map((id, node) => {
      const looks = this.#looks;
      return (looks[node] ??= this.#lookAt(node, id).finally(() => (looks[node] = undefined)));
    });
  }

  /**
   * A check finds an unreachable node and a locked shard, but only creates find a full disk. So a check that succeeds
   * does not undo the failure of a create at once.
   *
   * @returns whether a shard of the node can be written.
   */
  async #lookAt(node: number, id: bigint): Promise<boolean> {
    const map = this.#map;
    const shards = [...map.nodes.keys()].filter((shard) => map.nodes[shard] === node);
    // If the table is one shard, the caller has checked it.
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

  /** Logs once how many shards can be written, after a check of all nodes. */
  async #tell(): Promise<void> {
    await Promise.all(this.#lookAtNodes());
    const { count, writable } = this;
    if (writable < count) this.logger.warn({ shards: count, writable }, 'Not every shard can be written');
  }
}
