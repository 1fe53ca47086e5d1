// Fastify and pg behind the service's own group commit, with the limits that the service gives it.
import pg from 'pg';
import { GroupCommit } from '../../dist/src/plants/group-commit.js';
import { servePlants } from './fastify-plants.js';

const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL });

const commits = new GroupCommit(writeBatch, {
  batchRows: 64,
  batchCharacters: 1024 * 1024,
  statements: 2,
  waitingCreates: 2_048,
  waitingCharacters: 16 * 1024 * 1024,
  timeoutMs: 4_000,
});

async function writeBatch(plants) {
  const sorted = plants.toSorted((a, b) => (a.id < b.id ? -1 : 1));
  const values = sorted.map((_, row) => `($${3 * row + 1},$${3 * row + 2},$${3 * row + 3})`).join(',');
  const { rows } = await pool.query(
    `INSERT INTO plants (id, name, tag) VALUES ${values} ON CONFLICT (id) DO NOTHING RETURNING id`,
    sorted.flatMap(({ id, name, tag }) => [id.toString(), name, tag]),
  );
  const inserted = new Set(rows.map(({ id }) => BigInt(id)));
  const taken = sorted.filter(({ id }) => !inserted.has(id));
  const written = sorted.filter(({ id }) => inserted.has(id)).map((stored) => ({ isNew: true, stored }));
  if (taken.length === 0) return written;
  const found = await pool.query('SELECT id, name, tag FROM plants WHERE id = ANY($1)', [
    taken.map(({ id }) => id.toString()),
  ]);
  return [...written, ...found.rows.map((row) => ({ isNew: false, stored: { ...row, id: BigInt(row.id) } }))];
}

await servePlants(async ({ id, name, tag }) => {
  const result = await commits.create({ id: BigInt(id), name, tag: tag ?? null });
  if (result === 'conflict') throw new Error('The id is taken');
});
