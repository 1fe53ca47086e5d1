import type { IncomingMessage, RequestListener, Server } from 'node:http';
import { Failure } from '../errors/failure.js';
import { connectionOf } from './connection.js';
import { timesSent } from './field-lines.js';
import { BAD_TARGET } from './framing.js';
import type { Refuse } from './refuse.js';

/**
 * RFC 9110 section 7.2: a host with or without a port, or nothing. RFC 3986 sub-delims are refused on purpose: no real
 * host has them, and a comma is how a proxy folds two Hosts.
 */
const HOST = /^(?:[\w.~%-]*|\[[\da-f:.]+\])(?::\d{0,5})?$/i;
/** A request target in absolute form (RFC 9112 section 3.2.2), which every server must take. */
const ABSOLUTE_FORM = /^https?:\/\/([^/?#]+)(.*)$/i;

const NO_HOST = new Failure(400, 'Host is missing');
const MANY_HOSTS = new Failure(400, 'Host must be sent once');
const BAD_HOST = new Failure(400, 'Host must be a host name or address, with or without a port');
const MANY_CONTENT_TYPES = new Failure(400, 'Content-Type must be sent once');
const UNKNOWN_EXPECTATION = new Failure(417, 'The only expectation that can be met is 100-continue');

/**
 * Refuses, before Express sees it, a well-formed head that another reader of the same bytes (a gateway) might take for
 * another request, or that asks for what cannot be done.
 */
export function refuseMalformedHeads(server: Server, refuse: Refuse): void {
  const [handle] = server.listeners('request') as [RequestListener];
  server.removeListener('request', handle).on('request', (request: IncomingMessage, response) => {
    connectionOf(request.socket)?.begin(response);
    if (request.url?.startsWith('/') === false) toOriginForm(request);
    const failure = failureOf(request);
    if (failure === undefined) handle.call(server, request, response);
    else refuse(failure, { socket: request.socket, response });
  });
}

/** Express could not route some targets of the absolute form, and would answer in a shape of its own. */
function toOriginForm(request: IncomingMessage): void {
  const [, host, pathAndQuery = ''] = ABSOLUTE_FORM.exec(request.url as string) ?? [];
  if (host === undefined || !HOST.test(host)) return;
  request.url = pathAndQuery.startsWith('/') ? pathAndQuery : `/${pathAndQuery}`;
}

function failureOf(request: IncomingMessage): Failure | undefined {
  const { httpVersion, url = '', headers } = request;
  // An absolute form with a host that is none was left as it is.
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
