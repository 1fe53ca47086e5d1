import type { INestApplication } from '@nestjs/common';
import { DocumentBuilder, SwaggerModule, type OpenAPIObject } from '@nestjs/swagger';
import { operationsOf } from './operations.js';

const DEFAULT_BASE_URL = 'http://localhost:3000';

const DESCRIPTION =
  'A plant store with one operation, which creates a plant. ' +
  'It is a sample interface that demonstrates features of the OpenAPI 3.1.0 format.';

/**
 * Builds the OpenAPI document from the decorators. A test checks that it equals the contract in `openapi.json`.
 *
 * @param baseUrl the public base URL, the default of the contract's `{base_url}`.
 */
export function buildDocument(app: INestApplication, baseUrl = DEFAULT_BASE_URL): OpenAPIObject {
  const frame = new DocumentBuilder()
    .setOpenAPIVersion('3.1.0')
    .addSecurity('bearerAuth', { type: 'http', scheme: 'bearer' })
    .addSecurityRequirements('bearerAuth')
    .build();
  // The builder adds empty members that the contract does not have: contact, license url, tags.
  frame.info = {
    title: 'OpenAPI Plant Store',
    description: DESCRIPTION,
    license: { name: 'MIT' },
    version: '1.0.0',
  };
  frame.servers = [
    {
      url: '{base_url}',
      variables: { base_url: { default: baseUrl, description: 'Base address of the service' } },
    },
  ];
  delete frame.tags;
  const document = SwaggerModule.createDocument(app, frame, { autoTagControllers: false });
  for (const { operation } of operationsOf(document)) {
    if (operation.parameters?.length === 0) delete operation.parameters;
  }
  return document;
}
