import type { DataSource } from 'typeorm';

const BATCH_ROWS = 1_000;
const BATCH_BYTES = 4 * 1024 * 1024;

/** The next rows after an id, as a JSON array with all their columns. JSON text keeps a bigint and a time exactly. */
const NEXT_ROWS = `
  SELECT json_agg(to_json(p) ORDER BY id)::text AS rows, count(*)::float8 AS count, max(id) AS last
  FROM plants AS p JOIN (
    SELECT id, sum(octet_length(name) + coalesce(octet_length(tag), 0)) OVER (ORDER BY id) AS bytes,
      row_number() OVER (ORDER BY id) AS number
    FROM (SELECT * FROM plants WHERE $1::bigint IS NULL OR id > $1 ORDER BY id LIMIT ${BATCH_ROWS}) AS batch
  ) AS sizes USING (id)
  WHERE number = 1 OR bytes <= ${BATCH_BYTES}`;

const INSERT = `
  INSERT INTO plants SELECT * FROM json_populate_recordset(NULL::plants, $1::json)
  ON CONFLICT (id) DO NOTHING RETURNING id`;

const DIFFERENT = `
  SELECT wanted->>'id' AS id
  FROM jsonb_array_elements($1::jsonb) AS wanted LEFT JOIN plants AS p ON p.id = (wanted->>'id')::bigint
  WHERE to_jsonb(p) IS DISTINCT FROM wanted
  ORDER BY (wanted->>'id')::bigint`;

export interface Copied {
  /** How many plants the source has. */
  total: number;
  /** How many were stored now. The target had the others. */
  stored: number;
  /** The ids whose rows in the target differ from the source or are missing. */
  different: string[];
  /** How many plants the target has afterwards. */
  targetTotal: number;
}

/**
 * Copies all plants from one database to another and compares each row with the target's. It never changes a row, so it
 * may be stopped and repeated at any time.
 *
 * @param source,target both migrated to the same schema.
 * @param onProgress called after each batch with the number of plants compared so far and in total.
 */
export async function copyPlants(
  source: DataSource,
  target: DataSource,
  onProgress: (done: number, total: number) => void,
): Promise<Copied> {
  const total = await countPlants(source);
  const copied: Copied = { total: 0, stored: 0, different: [], targetTotal: 0 };
  let last: string | null = null;
  for (;;) {
    const [batch]: Batch[] = await inUtc(source, NEXT_ROWS, [last]);
    if (batch?.rows == null) break;
    const stored = await inUtc<{ id: string }>(target, INSERT, [batch.rows]);
    const different = await inUtc<{ id: string }>(target, DIFFERENT, [batch.rows]);
    copied.total += batch.count;
    copied.stored += stored.length;
    copied.different.push(...different.map(({ id }) => id));
    last = batch.last;
    onProgress(copied.total, total);
  }
  copied.targetTotal = await countPlants(target);
  return copied;
}

interface Batch {
  /** Null if there are none. */
  rows: string | null;
  count: number;
  last: string;
}

/** Runs a statement in a transaction that writes times in UTC. */
function inUtc<Row>(database: DataSource, sql: string, parameters: unknown[]): Promise<Row[]> {
  return database.transaction(async (manager) => {
    await manager.query("SET LOCAL TimeZone TO 'UTC'");
    return manager.query<Row[]>(sql, parameters);
  });
}

async function countPlants(database: DataSource): Promise<number> {
  const [row] = await database.query<{ count: number }[]>('SELECT count(*)::float8 AS count FROM plants');
  return row?.count ?? 0;
}
