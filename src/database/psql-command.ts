import type { PoolClient } from 'pg';
import { embeddedDataSource, requireEmbeddedDatabase, runCommand, withDatabase } from './command.js';

// `npm run db:psql -- "SELECT …"`: runs one read-only statement on the embedded database. Writes each row as a line of
// JSON whose values are text, as in psql, so that numbers stay exact.
await runCommand('The statement was not run', async () => {
  const text = process.argv[2];
  if (text === undefined)
    throw new Error('give it as an argument: npm run db:psql -- "SELECT count(*) FROM plants"');
  requireEmbeddedDatabase();
  const dataSource = embeddedDataSource();
  await withDatabase(dataSource, async () => {
    const runner = dataSource.createQueryRunner();
    const client = (await runner.connect()) as PoolClient;
    await client.query('BEGIN READ ONLY');
    // A prepared statement is a single one, so no second one can end the read-only transaction.
    const { rows } = await client.query<Record<string, string | null>>({
      name: 'command',
      text,
      types: { getTypeParser: () => (value: string) => value },
    });
    for (const row of rows) console.log(JSON.stringify(row));
    await client.query('ROLLBACK');
    await runner.release();
  });
});
