import { Module, type DynamicModule } from '@nestjs/common';
import type { Logger } from 'pino';
import { AuthModule } from './auth/auth.module.js';
import { ConfigModule } from './config/config.module.js';
import type { Config } from './config/config.js';
import { Connections } from './connection/connections.js';
import { DatabaseModule } from './database/database.module.js';
import { OperationsModule } from './operations/operations.module.js';
import { PlantsModule } from './plants/plants.module.js';

@Module({})
export class AppModule {
  static forRoot(config: Config, logger: Logger): DynamicModule {
    return {
      module: AppModule,
      providers: [Connections],
      imports: [
        ConfigModule.forRoot(config),
        OperationsModule.forRoot(config, logger),
        DatabaseModule,
        AuthModule,
        PlantsModule,
      ],
    };
  }
}
