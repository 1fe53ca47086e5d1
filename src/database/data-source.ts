import { DataSource, type DataSourceOptions } from 'typeorm';
import { MIGRATIONS } from '../../migrations/index.js';
import type { Config } from '../config/config.js';
import { PlantEntity } from '../plants/plant.entity.js';
import type { EmbeddedPostgres } from './embedded/embedded-postgres.js';

/**
 * The one description of the database, for the service, the migrations and TypeORM's command line.
 *
 * @param onIdleError called when a connection of the pool that is not in use is lost.
 */
export function createDataSource(
  config: Config['database'],
  onIdleError: (error: Error) => void,
): DataSource {
  const options: DataSourceOptions = {
    type: 'postgres',
    applicationName: 'plant-store',
    entities: [PlantEntity],
    migrations: MIGRATIONS,
    migrationsTableName: 'migrations',
    // The schema changes by migrations only.
    synchronize: false,
    installExtensions: false,
    logging: false,
    connectTimeoutMS: config.timeoutMs,
    poolErrorHandler: onIdleError,
    ...(config.url === undefined
      ? { username: 'postgres', database: 'postgres', poolSize: 1 }
      : { url: config.url, poolSize: config.poolSize, extra: { keepAlive: true } }),
  };
  return new DataSource(options);
}

/** Lets a data source reach the embedded database by its stream; before `initialize`. */
export function useEmbedded(dataSource: DataSource, embedded: EmbeddedPostgres): void {
  dataSource.setOptions({
    extra: { stream: embedded.openStream, idleTimeoutMillis: 0 },
  });
}
