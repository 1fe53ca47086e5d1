import type { INestApplication } from '@nestjs/common';
import { DocumentBuilder, SwaggerModule, type OpenAPIObject } from '@nestjs/swagger';

const DEFAULT_BASE_URL = 'http://localhost:3000';

/**
 * The OpenAPI document as the decorators have it: member for member the contract in `openapi.json`, which a test checks.
 *
 * @param baseUrl the public base address, which becomes the default of the contract's `{base_url}`.
 */
export function buildDocument(app: INestApplication, baseUrl = DEFAULT_BASE_URL): OpenAPIObject {
  const description =
    'A plant store with one operation, which creates a plant. It is a sample interface that demonstrates features of the OpenAPI 3.1.0 format.';
  const frame = new DocumentBuilder()
    .setOpenAPIVersion('3.1.0')
    .setTitle('OpenAPI Plant Store')
    .setDescription(description)
    .setVersion('1.0.0')
    .setLicense('MIT', '')
    .addServer('{base_url}', undefined, {
      base_url: { default: baseUrl, description: 'Base address of the service' },
    })
    .addSecurity('bearerAuth', { type: 'http', scheme: 'bearer' })
    .addSecurityRequirements('bearerAuth')
    .build();
  return withoutBlanks(SwaggerModule.createDocument(app, frame, { autoTagControllers: false }));
}

/** Leaves out what Nest's builder adds where nothing was said: empty texts, lists and objects. */
function withoutBlanks<T>(node: T): T {
  if (Array.isArray(node)) return node.map(withoutBlanks) as T;
  if (node === null || typeof node !== 'object') return node;
  return Object.fromEntries(
    Object.entries(node)
      .filter(([name, value]) => name === 'bearerAuth' || !isBlank(value))
      .map(([name, value]) => [name, withoutBlanks(value as unknown)]),
  ) as T;
}

function isBlank(value: unknown): boolean {
  if (value === undefined || value === '') return true;
  return value !== null && typeof value === 'object' && Object.keys(value).length === 0;
}
