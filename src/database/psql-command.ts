import type { PoolClient } from 'pg';
import { embeddedDataSource, requireEmbeddedDatabase, runCommand, withDatabase } from './command.js';

// `npm run db:psql -- "SELECT …"`: one statement on the embedded database, which reads only. Each row is written as a
// line of JSON; its values are text, as in psql, so that numbers stay exact.
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
    // A text that has a name is sent as one statement, so none can follow that ends the transaction.
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
