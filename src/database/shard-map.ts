/** How many ids are tried to find one of each shard: enough for some thousand shards. */
const EXAMPLE_TRIES = 100_000n;

/** One shard of the table: its range of hash values, both ends included, and the group of nodes that stores it. */
export interface ShardRow {
  minimum: number;
  maximum: number;
  group: number;
}

/** Where the rows of the table are stored. */
export interface ShardMap {
  /** The node of each shard. Nodes are numbered from 0. A table that is not distributed is one shard. */
  readonly nodes: readonly number[];
  /** @returns the shard of an id, an index of `nodes`. */
  readonly shardOf: (id: bigint) => number;
}

export const ONE_SHARD: ShardMap = { nodes: [0], shardOf: () => 0 };

/** Whether the database has Citus's catalogue. Every PostgreSQL can answer this. */
export const HAS_SHARDS = {
  text: `SELECT to_regclass('pg_dist_shard') IS NOT NULL AS "hasShards"`,
  values: [],
};

/**
 * The shards of the table, or no row if Citus does not distribute it by the hash of its id. Any user may read
 * `pg_dist_shard` at every node. Its hash values are text.
 */
export const SELECT_SHARDS = {
  text: `
    SELECT shardminvalue::int AS minimum, shardmaxvalue::int AS maximum, min(placement.groupid) AS "group"
    FROM pg_dist_partition JOIN pg_dist_shard USING (logicalrelid) JOIN pg_dist_placement placement USING (shardid)
    WHERE logicalrelid = to_regclass('plants')
      AND partmethod = 'h' AND column_to_column_name(logicalrelid, partkey) = 'id'
    GROUP BY shardid, shardminvalue, shardmaxvalue
    ORDER BY minimum`,
  values: [],
};

/** @param rows in ascending order. */
export function shardMapOf(rows: readonly ShardRow[]): ShardMap {
  if (rows.length < 2) return ONE_SHARD;
  const minima = Int32Array.from(rows, ({ minimum }) => minimum);
  const groups = [...new Set(rows.map(({ group }) => group))];
  return {
    nodes: rows.map(({ group }) => groups.indexOf(group)),
    shardOf: (id) => {
      const hash = hashInt8(id);
      let low = 0;
      let high = minima.length - 1;
      while (low < high) {
        const middle = (low + high + 1) >> 1;
        if ((minima[middle] as number) <= hash) low = middle;
        else high = middle - 1;
      }
      return low;
    },
  };
}

/** @returns an id of each shard, or 0 for a shard so small that no tried id belongs to it. */
export function exampleIds({ nodes, shardOf }: ShardMap): bigint[] {
  const ids = nodes.map(() => 0n);
  const found = new Set([shardOf(0n)]);
  for (let id = 1n; found.size < nodes.length && id < EXAMPLE_TRIES; id++) {
    const shard = shardOf(id);
    if (!found.has(shard)) ids[shard] = id;
    found.add(shard);
  }
  return ids;
}

const int64 = new BigInt64Array(1);
const halves = new Int32Array(int64.buffer);

const rotate = (value: number, bits: number) => (value << bits) | (value >>> (32 - bits));

/**
 * PostgreSQL's `hashint8`, with which Citus chooses the shard of a bigint. The halves are folded into one, so that a
 * value has the same hash as an int4, and hashed by Bob Jenkins' `final` (hashfn.c, hash_bytes_uint32).
 *
 * @returns an int32.
 */
export function hashInt8(value: bigint): number {
  int64[0] = value;
  const folded = (halves[0] as number) ^ (halves[1] as number);
  const seed = (0x9e3779b9 + 4 + 3923095) | 0;
  let a = (seed + (value < 0n ? ~folded : folded)) | 0;
  let b = seed;
  let c = seed;
  c = ((c ^ b) - rotate(b, 14)) | 0;
  a = ((a ^ c) - rotate(c, 11)) | 0;
  b = ((b ^ a) - rotate(a, 25)) | 0;
  c = ((c ^ b) - rotate(b, 16)) | 0;
  a = ((a ^ c) - rotate(c, 4)) | 0;
  b = ((b ^ a) - rotate(a, 14)) | 0;
  return ((c ^ b) - rotate(b, 24)) | 0;
}
