import { MigrationExecutor, type DataSource } from 'typeorm';

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
