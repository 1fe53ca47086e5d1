import { loadConfigOfProcess } from '../config/config.js';
import { createLogger } from '../logging/logging.js';
import { createDataSource } from './data-source.js';

const config = loadConfigOfProcess();

/** The database that the environment names, not connected yet: for the commands, TypeORM's own among them. */
export const dataSource = createDataSource(config.database, createLogger(config.operations));
