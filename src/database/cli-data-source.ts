import { loadConfigOfProcess } from '../config/config.js';
import { createLogger } from '../logging/logging.js';
import { createDataSource, useEmbedded } from './data-source.js';
import { openEmbeddedPostgres } from './embedded/embedded-postgres.js';

const config = loadConfigOfProcess();

/** The database that the environment names, not connected yet: for the commands, TypeORM's own among them. */
export const dataSource = createDataSource(config.database, () => undefined);

if (config.database.url === undefined) {
  const embedded = await openEmbeddedPostgres(config.database.dataDir, createLogger(config.operations));
  useEmbedded(dataSource, embedded);
  const disconnect = dataSource.destroy.bind(dataSource);
  // The embedded database ends with its connection: TypeORM's commands know of nothing else to close.
  dataSource.destroy = async () => {
    await disconnect();
    await embedded.close();
  };
}
