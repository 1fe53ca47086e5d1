// The service's own group commit, with the same limits, over `pg` alone.
import pg from 'pg';
import { FIXED_LIMITS, GroupCommit } from '../../dist/src/plants/group-commit.js';

const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL });

export const commits = new GroupCommit(writeBatch, {
  ...FIXED_LIMITS,
  statements: FIXED_LIMITS.statementsPerNode,
  timeoutMs: 4_000,
});

async function writeBatch(plants) {
  const values = plants.map((_, row) => `($${3 * row + 1},$${3 * row + 2},$${3 * row + 3})`).join(',');
  const { rows } = await pool.query(
    `INSERT INTO plants (id, name, tag) VALUES ${values} ON CONFLICT (id) DO NOTHING RETURNING id`,
    plants.flatMap(({ id, name, tag }) => [id.toString(), name, tag]),
  );
  if (rows.length === plants.length) return plants.map((stored) => ({ isNew: true, stored }));
  const inserted = new Set(rows.map(({ id }) => BigInt(id)));
  const taken = plants.filter(({ id }) => !inserted.has(id));
  const found = await pool.query('SELECT id, name, tag FROM plants WHERE id = ANY($1)', [
    taken.map(({ id }) => id.toString()),
  ]);
  const storedBefore = new Map(found.rows.map((row) => [BigInt(row.id), { ...row, id: BigInt(row.id) }]));
  return plants.map((plant) =>
    inserted.has(plant.id)
      ? { isNew: true, stored: plant }
      : { isNew: false, stored: storedBefore.get(plant.id) },
  );
}
