FROM node:24-bookworm-slim AS dependencies
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
RUN npm ci --omit=dev

FROM node:24-bookworm-slim
ENV NODE_ENV=production
WORKDIR /app
COPY --from=dependencies /app/node_modules ./node_modules
COPY package.json LICENSE ./
COPY src ./src
COPY config ./config
# The ledger is on a volume that the unprivileged user owns.
RUN mkdir /data && chown node:node /data
USER node
VOLUME /data
ENV DAWATCH_CONFIG=/app/config/docker.yaml
# The home directory is read-only, and the container has no other user. Without a writable /tmp there is no compile cache.
ENV XDG_CACHE_HOME=/tmp
EXPOSE 8080
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=3s --start-period=10s --retries=3 \
  CMD ["node", "-e", "fetch('http://127.0.0.1:' + (process.env.DAWATCH_PORT || 8080) + '/readyz').then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]
CMD ["node", "--max-semi-space-size=16", "src/cli/main.js", "serve"]
