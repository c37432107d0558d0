import mysql, { type Connection } from 'mysql2/promise';

/** Runs statements on the server and the database that a URL names. */
export async function onServer<Result>(url: URL, work: (connection: Connection) => Promise<Result>): Promise<Result> {
  const connection = await mysql.createConnection({
    host: url.hostname,
    port: Number(url.port || 3306),
    user: decodeURIComponent(url.username),
    password: decodeURIComponent(url.password),
    database: decodeURIComponent(url.pathname.slice(1)),
    multipleStatements: true,
    jsonStrings: true,
  });
  try {
    return await work(connection);
  } finally {
    await connection.end();
  }
}
