import { hash } from 'node:crypto';
import { Injectable, type ExecutionContext } from '@nestjs/common';
import { Reflector } from '@nestjs/core';
import { AuthGuard } from '@nestjs/passport';
import type { Request } from 'express';
import { LRUCache } from 'lru-cache';
import { timesSent } from '../connection/field-lines.js';
import { Failure } from '../errors/failure.js';
import { REALM } from './bearer.strategy.js';
import type { Principal } from './principal.js';
import { IS_PUBLIC } from './public.decorator.js';

/** Passport is asked again after this time, so that a withdrawn key is not accepted for long. */
const VERDICT_MAX_AGE_MS = 60_000;
const VERDICTS_KEPT = 1_000;

/**
 * Requires a valid bearer token on every route that is not public (RFC 6750).
 *
 * Only passport and its strategy decide. A token that they accepted is remembered for a while, by the digest of its
 * header and never past its expiry.
 */
@Injectable()
export class BearerGuard extends AuthGuard('bearer') {
  readonly #accepted = new LRUCache<string, Principal>({ max: VERDICTS_KEPT });

  constructor(private readonly reflector: Reflector) {
    super();
  }

  override canActivate(context: ExecutionContext): boolean | Promise<boolean> {
    if (this.reflector.get<boolean | undefined>(IS_PUBLIC, context.getHandler()) === true) return true;
    const request = context.switchToHttp().getRequest<Request>();
    const header = onlyAuthorization(request);
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

  /** @param challenge the WWW-Authenticate that the strategy proposes. */
  override handleRequest<T>(
    error: unknown,
    principal: T | false,
    challenge: unknown,
    context: ExecutionContext,
  ): T {
    if (error instanceof Error) throw error;
    if (principal) return principal;
    // The strategy proposes no challenge if the Authorization header does not have exactly two parts.
    const { authorization = '' } = context.switchToHttp().getRequest<Request>().headers;
    const hasToken = /^bearer[ \t]/i.test(authorization);
    const refused =
      typeof challenge === 'string' ? challenge : challengeFor(hasToken ? 'invalid_token' : undefined);
    const message = refused.includes('error=')
      ? 'The bearer token is not valid, or no longer'
      : 'A bearer token is needed, in the Authorization header';
    throw new Failure(401, message, { headers: { 'WWW-Authenticate': refused } });
  }
}

/** RFC 6750 section 3: a challenge has an error code only if the request had credentials. */
function challengeFor(error?: string): string {
  return `Bearer realm="${REALM}"${error === undefined ? '' : `, error="${error}"`}`;
}

/** @throws {Failure} 400 if there are several Authorization headers: none of them can be trusted. */
function onlyAuthorization(request: Request): string | undefined {
  if (timesSent(request, 'authorization') > 1) {
    const headers = { 'WWW-Authenticate': challengeFor('invalid_request') };
    throw new Failure(400, 'Authorization must be sent once', { headers });
  }
  return request.headers.authorization;
}
