import { MigrationExecutor, type DataSource, type QueryRunner } from 'typeorm';
import { placeOf } from './catalogue.js';

/** The key of the lock that migrations run under: any number that nothing else in the database uses. */
const LOCK_KEY = '7309868274398';

/**
 * Runs the migrations that have not run yet, all in one transaction and one replica at a time. The lock belongs to the
 * transaction and not to the session, so it holds behind a pooler that hands out connections per transaction.
 *
 * @returns the names of the migrations that ran.
 */
export async function migrate(dataSource: DataSource): Promise<string[]> {
  const runner = dataSource.createQueryRunner();
  try {
    await runner.startTransaction();
    await runner.query(`SELECT pg_advisory_xact_lock(${LOCK_KEY})`);
    await stayInSchema(dataSource, runner);
    const executor = new MigrationExecutor(dataSource, runner);
    executor.transaction = 'all';
    const executed = await executor.executePendingMigrations();
    await runner.commitTransaction();
    return executed.map(({ name }) => name);
  } catch (error) {
    // The first error tells the cause; a lost connection cannot be rolled back and need not be.
    await runner.rollbackTransaction().catch(() => undefined);
    throw error;
  } finally {
    await runner.release();
  }
}

/**
 * Has the migrations go on in the schema of the table, if there is one. A schema that was made since and comes before it
 * in the search_path, such as one of the user's name, would else get an empty table, which hides the other.
 */
async function stayInSchema(dataSource: DataSource, runner: QueryRunner): Promise<void> {
  const { schema } = await placeOf(dataSource, runner);
  if (schema === null) return;
  await runner.query(
    "SELECT set_config('search_path', concat_ws(', ', quote_ident($1), nullif(current_setting('search_path'), '')), true)",
    [schema],
  );
  dataSource.driver.schema = schema;
}
