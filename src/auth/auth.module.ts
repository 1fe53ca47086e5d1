import { Module } from '@nestjs/common';
import { APP_GUARD } from '@nestjs/core';
import { BearerGuard } from './bearer.guard.js';
import { BearerStrategy } from './bearer.strategy.js';

/** Puts the bearer guard before every route of the application. */
@Module({ providers: [BearerStrategy, { provide: APP_GUARD, useClass: BearerGuard }] })
export class AuthModule {}
