// Fastify as its documentation shows it: a JSON schema validates the body and serializes the answer, a hook checks the
// token.
import fastify from 'fastify';

const authorization = `Bearer ${process.env.ACCESS_TOKEN}`;

const schema = {
  body: {
    type: 'object',
    required: ['id', 'name'],
    properties: { id: { type: 'integer' }, name: { type: 'string' }, tag: { type: 'string' } },
  },
  response: {
    200: {
      type: 'object',
      required: ['name'],
      properties: { name: { type: 'string' }, tag: { type: 'string' } },
    },
  },
};

/** @param store stores a plant, and resolves once it is committed. */
export async function servePlants(store) {
  const app = fastify();
  app.addHook('onRequest', async (request, reply) => {
    if (request.headers.authorization !== authorization) return reply.code(401).send({ error: 401 });
  });
  app.post('/plants', { schema }, async (request) => {
    const { id, name, tag } = request.body;
    await store({ id, name, tag });
    return { name, tag };
  });
  await app.listen({ port: Number(process.env.PORT), host: '127.0.0.1' });
}
