import { Global, Module, type DynamicModule } from '@nestjs/common';
import type { Logger } from 'pino';
import type { Config } from '../config/config.js';
import { Descriptors } from './descriptors.js';
import { HealthController } from './health.controller.js';
import { Lifecycle } from './lifecycle.js';
import { LOGGER } from '../logging/logging.js';
import { METRICS, Metrics } from './metrics.js';
import { MetricsController } from './metrics.controller.js';
import { OperationsPort } from './operations-port.js';

@Global()
@Module({})
export class OperationsModule {
  static forRoot(config: Config, logger: Logger): DynamicModule {
    const { metrics, metricsPort } = config.operations;
    return {
      module: OperationsModule,
      controllers: metrics ? [HealthController, MetricsController] : [HealthController],
      providers: [
        Descriptors,
        Lifecycle,
        ...(metricsPort === undefined ? [] : [OperationsPort]),
        { provide: LOGGER, useValue: logger },
        { provide: METRICS, useFactory: () => new Metrics(metrics) },
      ],
      exports: [Lifecycle, LOGGER, METRICS],
    };
  }
}
