import type { DataSource } from 'typeorm';
import { loadConfigOfProcess } from '../config/config.js';
import { createLogger } from '../logging/logging.js';
import { withoutSecrets } from '../logging/serialize-error.js';
import { createDataSource } from './data-source.js';
import { hasDatabase } from './embedded/data-folder.js';

/**
 * Runs the work of a command. If it fails, one sentence goes to standard error and the exit code is 1.
 *
 * @param failure how that sentence begins.
 */
export async function runCommand(failure: string, work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    console.error(`${failure}: ${withoutSecrets(error instanceof Error ? error.message : String(error))}`);
    process.exitCode = 1;
  }
}

/** Connects to a database while the work runs. */
export async function withDatabase(dataSource: DataSource, work: () => Promise<void>): Promise<void> {
  await dataSource.initialize();
  try {
    await work();
  } finally {
    await dataSource.destroy();
  }
}

/** @returns the embedded database of `DATA_DIR`, not connected yet, even if `DATABASE_URL` is set. */
export function embeddedDataSource(): DataSource {
  const { database, operations } = loadConfigOfProcess();
  return createDataSource({ ...database, url: undefined }, createLogger(operations));
}

/** @throws {Error} if `DATA_DIR` has no embedded database: a command that reads must not create an empty one. */
export function requireEmbeddedDatabase(): void {
  const { dataDir } = loadConfigOfProcess().database;
  if (!hasDatabase(dataDir)) throw new Error(`there is no embedded database in ${dataDir}; set DATA_DIR`);
}
