import { Global, Module, type DynamicModule } from '@nestjs/common';
import type { Config } from './config.js';

/** Injects the one {@link Config} of the application. */
export const CONFIG = Symbol('CONFIG');

@Global()
@Module({})
export class ConfigModule {
  static forRoot(config: Config): DynamicModule {
    return { module: ConfigModule, providers: [{ provide: CONFIG, useValue: config }], exports: [CONFIG] };
  }
}
