import type { INestApplication } from '@nestjs/common';
import { SwaggerModule, type OpenAPIObject } from '@nestjs/swagger';
import { operationsOf } from './operations.js';

/**
 * Builds the OpenAPI document from the decorators. A test checks that it equals the contract in `openapi.json`.
 *
 * @param baseUrl the public base URL, the default of the contract's `{base_url}`.
 */
export function buildDocument(app: INestApplication, baseUrl = 'http://localhost:3000'): OpenAPIObject {
  const frame: Omit<OpenAPIObject, 'paths'> = {
    openapi: '3.1.0',
    info: {
      title: 'OpenAPI Plant Store',
      description:
        'A plant store with one operation, which creates a plant. ' +
        'It is a sample interface that demonstrates features of the OpenAPI 3.1.0 format.',
      license: { name: 'MIT' },
      version: '1.0.0',
    },
    servers: [
      {
        url: '{base_url}',
        variables: { base_url: { default: baseUrl, description: 'Base address of the service' } },
      },
    ],
    security: [{ bearerAuth: [] }],
    components: { securitySchemes: { bearerAuth: { type: 'http', scheme: 'bearer' } } },
  };
  const document = SwaggerModule.createDocument(app, frame, { autoTagControllers: false });
  for (const { operation } of operationsOf(document)) {
    if (operation.parameters?.length === 0) delete operation.parameters;
  }
  return document;
}
