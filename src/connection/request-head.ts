import type { IncomingMessage, RequestListener, Server } from 'node:http';
import { Failure } from '../errors/failure.js';
import { connectionOf } from './connection.js';
import { timesSent } from './field-lines.js';
import { BAD_TARGET } from './framing.js';

/**
 * RFC 9110 section 7.2: a host with or without a port, or nothing. The sub-delims of RFC 3986 are refused on purpose:
 * no real host has them, and a proxy joins two Host fields with a comma.
 */
const HOST = /^(?:[\w.~%-]*|\[[\da-f:.]+\])(?::\d{0,5})?$/i;
/** A request target in absolute form, which every server must accept (RFC 9112 section 3.2.2). */
const ABSOLUTE_FORM = /^https?:\/\/([^/?#]+)(.*)$/i;

const NO_HOST = new Failure(400, 'Host is missing');
const MANY_HOSTS = new Failure(400, 'Host must be sent once');
const BAD_HOST = new Failure(400, 'Host must be a host name or address, with or without a port');
const MANY_CONTENT_TYPES = new Failure(400, 'Content-Type must be sent once');
const UNKNOWN_EXPECTATION = new Failure(417, 'The only expectation that can be met is 100-continue');

/**
 * Refuses, before Express sees it, a well-formed head that a gateway might read as a different request, or whose
 * expectation cannot be met.
 */
export function refuseMalformedHeads(server: Server): void {
  const [handle] = server.listeners('request') as [RequestListener];
  server.removeListener('request', handle).on('request', (request: IncomingMessage, response) => {
    const connection = connectionOf(request.socket);
    connection?.begin(response);
    if (request.url?.startsWith('/') === false) toOriginForm(request);
    const failure = failureOf(request);
    if (failure === undefined) handle.call(server, request, response);
    else connection?.fail(failure);
  });
}

/** Express cannot route some targets in absolute form and would answer in its own format. */
function toOriginForm(request: IncomingMessage): void {
  const [, host, pathAndQuery = ''] = ABSOLUTE_FORM.exec(request.url as string) ?? [];
  if (host === undefined || !HOST.test(host)) return;
  request.url = pathAndQuery.startsWith('/') ? pathAndQuery : `/${pathAndQuery}`;
}

function failureOf(request: IncomingMessage): Failure | undefined {
  const { httpVersion, url = '', headers } = request;
  // toOriginForm() leaves a target that has an invalid host.
  if (!url.startsWith('/') && url !== '*') return BAD_TARGET;

  const hosts = timesSent(request, 'host');
  const isCurrent = httpVersion === '1.1';
  if (hosts === 0 && isCurrent) return NO_HOST;
  if (hosts > 1) return MANY_HOSTS;
  if (!HOST.test(headers.host ?? '')) return BAD_HOST;
  if (timesSent(request, 'content-type') > 1) return MANY_CONTENT_TYPES;

  const { expect } = headers;
  if (expect !== undefined && isCurrent && expect.toLowerCase() !== '100-continue')
    return UNKNOWN_EXPECTATION;
  return undefined;
}
