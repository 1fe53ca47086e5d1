import { Controller, Get, HttpCode } from '@nestjs/common';
import { ApiExcludeController } from '@nestjs/swagger';
import { Public } from '../auth/public.decorator.js';
import { Database } from '../database/database.js';
import { Failure } from '../errors/failure.js';
import { Lifecycle } from './lifecycle.js';

/** Probes for an orchestrator. They are not part of the contract, and a gateway should not forward them. */
@ApiExcludeController()
@Controller('health')
export class HealthController {
  constructor(
    private readonly database: Database,
    private readonly lifecycle: Lifecycle,
  ) {}

  /** Whether the process works. It does not depend on the database, which a restart would not repair. */
  @Get('live')
  @Public()
  @HttpCode(200)
  live() {
    return { status: 'live' };
  }

  /** Whether requests should be sent here: not while the service starts or stops or the database cannot be used. */
  @Get('ready')
  @Public()
  @HttpCode(200)
  async ready() {
    if (this.lifecycle.isStopping) throw new Failure(503, 'The service is stopping');
    if (!(await this.database.isReady())) throw new Failure(503, 'The store cannot be reached');
    return { status: 'ready' };
  }
}
