import { Global, Module } from '@nestjs/common';
import type { Logger } from 'pino';
import { DataSource } from 'typeorm';
import { CONFIG } from '../config/config.module.js';
import type { Config } from '../config/config.js';
import { LOGGER } from '../logging/logging.js';
import { createDataSource } from './data-source.js';
import { Database } from './database.js';

@Global()
@Module({
  providers: [
    {
      provide: DataSource,
      inject: [CONFIG, LOGGER],
      useFactory: (config: Config, logger: Logger) => createDataSource(config.database, logger),
    },
    Database,
  ],
  exports: [DataSource, Database],
})
export class DatabaseModule {}
