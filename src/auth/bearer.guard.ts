import { hash } from 'node:crypto';
import { Injectable, type ExecutionContext } from '@nestjs/common';
import { Reflector } from '@nestjs/core';
import { AuthGuard } from '@nestjs/passport';
import type { Request } from 'express';
import { LRUCache } from 'lru-cache';
import { timesSent } from '../connection/field-lines.js';
import { Failure } from '../errors/failure.js';
import type { Principal } from './principal.js';
import { Public } from './public.decorator.js';

/** Passport is asked again after this time, so that a withdrawn key is not accepted for long. */
const VERDICT_MAX_AGE_MS = 60_000;
const VERDICTS_KEPT = 1_000;

/**
 * Requires a valid bearer token on every route that is not public (RFC 6750). Only Passport and its strategy decide. A
 * token that they accepted is remembered for a while, by the digest of its header and never past its expiry: without
 * that a create takes 1.4 times the CPU.
 */
@Injectable()
export class BearerGuard extends AuthGuard('bearer') {
  readonly #accepted = new LRUCache<string, Principal>({
    max: VERDICTS_KEPT,
    // Looked up each time, so that tests can move the clock.
    perf: { now: () => performance.now() },
  });

  constructor(private readonly reflector: Reflector) {
    super();
  }

  override canActivate(context: ExecutionContext): boolean | Promise<boolean> {
    if (this.reflector.get(Public, context.getHandler())) return true;
    const request = context.switchToHttp().getRequest<Request>();
    // If there are several, a gateway might have read a different one.
    if (timesSent(request, 'authorization') > 1)
      throw refusal(400, 'Authorization must be sent once', 'invalid_request');
    const header = request.headers.authorization;
    if (header === undefined) return super.canActivate(context) as Promise<boolean>;

    const digest = hash('sha256', header, 'base64');
    const remembered = this.#accepted.get(digest);
    if (remembered !== undefined) {
      request.user = remembered;
      return true;
    }
    return this.#ask(context, request, header, digest);
  }

  async #ask(context: ExecutionContext, request: Request, header: string, digest: string): Promise<boolean> {
    // RFC 6750 section 2.1 allows several spaces after the scheme, but the strategy allows one.
    request.headers.authorization = header.replace(/^(bearer) +/i, '$1 ');
    await super.canActivate(context);
    const principal = request.user as Principal;
    const lifetime = Math.min(VERDICT_MAX_AGE_MS, (principal.expiresAt ?? Infinity) - Date.now());
    if (lifetime >= 1) this.#accepted.set(digest, principal, { ttl: lifetime });
    return true;
  }

  override handleRequest<T>(error: unknown, principal: T | false, _: unknown, context: ExecutionContext): T {
    if (error instanceof Error) throw error;
    if (principal) return principal;
    // The strategy's own challenge has no error code if the header does not have exactly two parts.
    const { authorization = '' } = context.switchToHttp().getRequest<Request>().headers;
    throw /^bearer[ \t]/i.test(authorization)
      ? refusal(401, 'The bearer token is invalid or has expired', 'invalid_token')
      : refusal(401, 'A bearer token is needed, in the Authorization header');
  }
}

/** @param code RFC 6750 section 3.1's error code. Section 3: a challenge has one only if the request had credentials. */
function refusal(error: number, message: string, code?: string): Failure {
  const challenge = `Bearer realm="plant-store"${code === undefined ? '' : `, error="${code}"`}`;
  return new Failure(error, message, { headers: { 'WWW-Authenticate': challenge } });
}
