# The image contains what the npm package contains, with the dependencies of the lockfile.
FROM --platform=$BUILDPLATFORM node:24-bookworm-slim AS package
WORKDIR /build
COPY . .
RUN npm ci && npm run build && cp package-lock.json .npmrc dist
# Removes the bundled packages and those for development from the lockfile.
RUN cd dist && npm install --package-lock-only

# On the platform of the image, which decides about native packages.
FROM node:24-bookworm-slim AS app
COPY --from=package /build/dist /app
WORKDIR /app
RUN npm ci

FROM node:24-bookworm-slim
LABEL org.opencontainers.image.title="dawatch" \
  org.opencontainers.image.description="Monitors data-availability submissions until they are final" \
  org.opencontainers.image.licenses="MIT"
ENV NODE_ENV=production
WORKDIR /app
COPY --from=app /app ./
# The command, and the volume of the ledger, which the unprivileged user owns.
RUN ln -s /app/main.js /usr/local/bin/dawatch && mkdir /data && chown node:node /data
USER node
VOLUME /data
ENV DAWATCH_CONFIG=/app/config/docker.yaml
# The home directory is read-only, and the container has no other user. Without a writable /tmp there is no compile cache.
ENV XDG_CACHE_HOME=/tmp
# A migration of a large ledger needs temporary files, for which a read-only container has no other folder.
ENV SQLITE_TMPDIR=/data
EXPOSE 8080
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=15s --timeout=5s --start-period=600s --retries=3 \
  CMD ["dawatch", "doctor", "--ready"]
CMD ["node", "--max-semi-space-size=16", "main.js", "serve"]
