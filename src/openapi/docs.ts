import { hash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { OpenAPIObject } from '@nestjs/swagger';
import type { Express, Request, Response } from 'express';
import helmet from 'helmet';
import { dump } from 'js-yaml';
// The package itself would load the page's scripts into this process: 35 MB and 0.1 s of the start.
import assetsFolder from 'swagger-ui-dist/absolute-path.js';
import { ICON, INITIALIZER, PAGE, STYLE } from './docs-page.js';

/** Allows Swagger UI from this service only: no inline script, eval or other host. No upgrade to https. */
const pagePolicy = helmet({
  contentSecurityPolicy: {
    useDefaults: false,
    directives: {
      defaultSrc: ["'none'"],
      scriptSrc: ["'self'"],
      styleSrc: ["'self'"],
      imgSrc: ["'self'", 'data:'],
      connectSrc: ["'self'"],
      baseUri: ["'none'"],
      formAction: ["'none'"],
      frameAncestors: ["'none'"],
    },
  },
  strictTransportSecurity: false,
  originAgentCluster: false,
  crossOriginOpenerPolicy: false,
});

/**
 * Serves the document as JSON and YAML, and Swagger UI. All URLs in the page are relative, so it works on any host and
 * behind any path prefix.
 */
export function serveDocs(app: Express, document: OpenAPIObject): void {
  const asset = (name: string) => () => readFileSync(join(assetsFolder(), name), 'utf8');
  const resources: [path: string, type: string, make: () => string][] = [
    ['/openapi.json', 'application/json', () => JSON.stringify(document, null, 2)],
    ['/openapi.yaml', 'application/yaml', () => dump(document)],
    ['/docs', 'text/html; charset=utf-8', () => PAGE],
    ['/docs/initializer.js', 'text/javascript; charset=utf-8', () => INITIALIZER],
    ['/docs/style.css', 'text/css; charset=utf-8', () => STYLE],
    ['/docs/swagger-ui-bundle.js', 'text/javascript; charset=utf-8', asset('swagger-ui-bundle.js')],
    ['/docs/swagger-ui.css', 'text/css; charset=utf-8', asset('swagger-ui.css')],
    ['/docs/icon.svg', 'image/svg+xml; charset=utf-8', () => ICON],
  ];
  app.get('/docs', pagePolicy);
  for (const [path, type, make] of resources) app.get(path, send(type, make));

  // Relative, since a gateway may have removed a prefix from the path.
  app.get('/', redirect('docs'));
  app.get('/docs/', redirect('../docs'));
}

/** @param make called once, at the first request, so that the service starts faster and smaller. */
function send(type: string, make: () => string) {
  let made: { bytes: Buffer; etag: string } | undefined;
  return (_request: Request, response: Response): void => {
    if (made === undefined) {
      const bytes = Buffer.from(make());
      made = { bytes, etag: `"${hash('sha256', bytes, 'base64url')}"` };
    }
    response.setHeader('Content-Type', type);
    // The URLs have no version, so a browser must ask each time whether its copy is current.
    response.setHeader('Cache-Control', 'no-cache');
    response.setHeader('ETag', made.etag);
    // Express would add a charset to a string's media type, but application/json has none (RFC 8259 section 11).
    response.send(made.bytes);
  };
}

function redirect(location: string) {
  return (_request: Request, response: Response): void => {
    response.writeHead(308, { Location: location }).end();
  };
}
