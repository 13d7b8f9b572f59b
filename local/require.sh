#!/bin/sh
# Say plainly what is missing on this machine: require.sh python|java|node ...
missing=0

# A set-up clears what it makes anew: through a link, what somebody else is using.
for made in .venv .cache node_modules; do
    if [ -L "$made" ]; then
        echo "keyhop: $made is a link; set it up where it points to." >&2
        exit 1
    fi
done

lacks() {
    echo "keyhop: $1" >&2
    missing=1
}

number() { # the first number of a version such as 17.0.15 or v20.1
    echo "$1" | sed 's/^[^0-9]*//; s/[^0-9].*$//'
}

for tool in "$@"; do
    case $tool in
    python)
        python=${PYTHON:-python3}
        if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            lacks "Python 3.11 or newer is needed as $python (on Debian: apt-get install python3 python3-venv; or name another one: make PYTHON=python3.12 ...)."
        elif ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
            lacks "Python's venv module is missing (on Debian: apt-get install python3-venv)."
        fi
        ;;
    java)
        version=$(java -version 2>&1 | sed -n 's/.*version "\([^"]*\)".*/\1/p')
        if [ -z "$version" ] || [ "$(number "$version")" -lt 17 ]; then
            lacks "Java 17 or newer is needed for DynamoDB Local, found: ${version:-none} (on Debian: apt-get install openjdk-17-jre-headless)."
        fi
        ;;
    node)
        version=$(node --version 2>/dev/null)
        if [ -z "$version" ] || [ "$(number "$version")" -lt 20 ]; then
            lacks "Node 20 or newer is needed, found: ${version:-none} (Debian 12 has an older one: take it from NodeSource or nvm)."
        elif ! command -v npm >/dev/null 2>&1; then
            lacks "npm is missing: it comes with Node (on Debian: apt-get install npm)."
        fi
        ;;
    esac
done
exit $missing
