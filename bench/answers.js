// @ts-check
import { connect } from 'node:net';

/** What a server adds by itself, and what only one of the two can have. */
const OWN = new Set(['date', 'connection', 'keep-alive', 'www-authenticate']);

/**
 * That the floor does the same work: it answers with the same headers and fields as the service.
 *
 * @param {import('./routes.js').Route} route
 * @param {import('./server.js').Server} floor @param {import('./server.js').Server} service
 * @throws Error that says where they differ
 */
export async function checkSameAnswers({ name, requests, management }, floor, service) {
  const [first = '', second = first] = requests();
  const port = management ? service.managementPort : service.port;
  const ofFloor = shapeOf(await answerTo(floor.port, first));
  const ofService = shapeOf(await answerTo(port, second));
  if (ofFloor !== ofService) throw new Error(`${name}: the floor answers\n${ofFloor}\nand the service\n${ofService}`);
}

/** @param {number} port @param {string} request @returns {Promise<string>} */
function answerTo(port, request) {
  return new Promise((resolve, reject) => {
    let text = '';
    const socket = connect(port, '127.0.0.1', () => socket.write(request.replace('\r\n', '\r\nConnection: close\r\n')));
    socket.on('data', (chunk) => {
      text += chunk.toString('latin1');
    });
    socket.once('end', () => resolve(text));
    socket.once('error', reject);
  });
}

/** An answer's status, and the names of its headers and fields. @param {string} answer */
function shapeOf(answer) {
  const [head = '', body = ''] = answer.split('\r\n\r\n');
  const [status, ...lines] = head.split('\r\n');
  const names = lines.map((line) => line.split(':', 1)[0]?.toLowerCase() ?? '').filter((name) => !OWN.has(name));
  return [status, names.sort().join(), Object.keys(JSON.parse(body)).sort().join()].join('\n');
}
