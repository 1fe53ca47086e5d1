import { loadConfigOfProcess } from '../config/config.js';
import { createLogger } from '../logging/logging.js';
import { createDataSource } from './data-source.js';

const config = loadConfigOfProcess();

/** The configured database, not connected yet, for db:migrate and TypeORM's own commands. */
export const dataSource = createDataSource(config.database, createLogger(config.operations));
