# bash completion of aclog. In ~/.bashrc: source <(aclog completion bash)
_aclog() {
    local kind line
    local -a found=()
    {
        IFS= read -r kind
        while IFS= read -r line; do found+=("$line"); done
    } < <(_ACLOG_COMPLETE=bash "$1" "${COMP_LINE:0:COMP_POINT}" "$2" 2>/dev/null)
    COMPREPLY=()
    case $kind in
        files) compopt -o filenames 2>/dev/null; while IFS= read -r line; do COMPREPLY+=("$line"); done < <(compgen -f -- "$2") ;;
        directories) compopt -o filenames 2>/dev/null; while IFS= read -r line; do COMPREPLY+=("$line"); done < <(compgen -d -- "$2") ;;
        joined) compopt -o nospace 2>/dev/null; COMPREPLY=("${found[@]}") ;;
        words) COMPREPLY=("${found[@]}") ;;
    esac
}
complete -F _aclog aclog
